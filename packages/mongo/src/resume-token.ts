import { resumeToken, type ResumeToken } from '@nightporter/protocol';
import { BSON, type Document } from 'mongodb';

/** Tokens travel as text, exactly as the server gave them. They are neither compared nor looked into. */
export function tokenText(token: unknown): ResumeToken {
  return resumeToken(BSON.EJSON.stringify(token, { relaxed: false }));
}

/** Null where the text is not one of ours. */
export function tokenDocument(text: ResumeToken): Document | null {
  try {
    const token: unknown = BSON.EJSON.parse(text, { relaxed: false });
    return typeof token === 'object' ? token : null;
  } catch {
    return null;
  }
}
