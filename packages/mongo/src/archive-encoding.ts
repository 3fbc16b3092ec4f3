import type { OutboxDocument } from '@nightporter/contracts';
import { NightporterError } from '@nightporter/protocol';
import { BSON } from 'mongodb';
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';

const [compress, decompress] = [promisify(gzip), promisify(gunzip)];

/** More would be no file of ours: a batch is a few MiB. */
const DECODED_BYTES_MAX = 512 * 1_048_576;

/** One document a line, as extended JSON, so that `gunzip -c … | mongoimport` restores exactly what was there; compressed. */
export async function encodeArchive(documents: readonly OutboxDocument[]): Promise<Uint8Array> {
  const lines = documents.map((document) => `${BSON.EJSON.stringify(document, { relaxed: true })}\n`);
  return compress(Buffer.from(lines.join(''), 'utf8'));
}

/** Rejects with NP_ARCHIVE_FAILED when the content is not what its checksum says. */
export async function decodeArchive(file: {
  readonly name: string;
  readonly content: Uint8Array;
  readonly sha256: string;
}): Promise<readonly OutboxDocument[]> {
  const { content, name, sha256 } = file;
  const found = checksumOf(content);
  if (found !== sha256) throw damaged(name, `its SHA-256 is ${found}, and must be ${sha256}`);
  try {
    const text = (await decompress(content, { maxOutputLength: DECODED_BYTES_MAX })).toString('utf8');
    const lines = text.split('\n').filter((line) => line !== '');
    return lines.map((line) => BSON.EJSON.parse(line, { relaxed: true }) as OutboxDocument);
  } catch (error) {
    throw damaged(name, String(error), error);
  }
}

export function checksumOf(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}

function damaged(name: string, why: string, cause?: unknown): NightporterError {
  return new NightporterError('NP_ARCHIVE_FAILED', `Archive file ${name} cannot be read: ${why}.`, { cause });
}
