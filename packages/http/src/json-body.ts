import type { FastifyInstance } from 'fastify';
import { commonProblem, type Problem } from './problems.js';

export class MalformedJsonError extends Error {
  readonly statusCode = 400;
  readonly problem: Problem;

  constructor(detail: string) {
    super(detail);
    this.name = 'MalformedJsonError';
    this.problem = commonProblem('malformed-json', detail);
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * JSON is the only body that is read; anything else is answered 415. An empty body counts as none. What JSON leaves open is refused
 * by the schemas, which are strict at every level: keys such as `__proto__` are unknown fields to them.
 */
export function acceptJsonOnly(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body: Buffer, done) => {
    try {
      done(null, body.length === 0 ? undefined : parse(body));
    } catch (error) {
      done(error instanceof Error ? error : new MalformedJsonError(String(error)), undefined);
    }
  });
}

function parse(body: Buffer): unknown {
  let text: string;
  try {
    text = utf8.decode(body);
  } catch {
    throw new MalformedJsonError('the body is not UTF-8');
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new MalformedJsonError(error instanceof Error ? error.message : 'the body is not JSON');
  }
}
