import { DeleteObjectCommand, GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { NightporterError, assertArchiveName, type ArchiveFiles } from '@nightporter/protocol';
import { createHash } from 'node:crypto';
import { reasonOf } from './reason.js';
import { within } from './within.js';

export interface S3ArchiveOptions {
  readonly bucket: string;
  /** Stands before each name: empty, or with `/` at its end. */
  readonly prefix: string;
  /** Whether the bucket stands in the path of an address, and not in its host. */
  readonly isPathStyle: boolean;
  /** How long one call may take, its attempts and the search for credentials included. Default 30,000 ms. */
  readonly callMs?: number;
}

const CALL_MS = 30_000;
const CONNECT_MS = 3_000;
/** How long one attempt waits for its answer to begin; a file of a batch has a few megabytes at most. */
const ANSWER_MS = 10_000;
/** With pauses between them that grow, as the SDK has them. */
const ATTEMPTS_MAX = 3;

interface Place {
  readonly client: S3Client;
  readonly bucket: string;
  /** As messages name it. */
  readonly shown: string;
}

/**
 * Archive files in a bucket. An upload is one request, so that a file is whole or absent, and durable once S3 has answered. Credentials, region and
 * endpoint are found by the SDK: environment, profile, role. Connections that rest keep no process alive.
 */
export function createS3Archive({ bucket, callMs = CALL_MS, isPathStyle, prefix }: S3ArchiveOptions): ArchiveFiles {
  const place: Place = { client: clientOf(isPathStyle), bucket, shown: `s3://${bucket}/${prefix}` };
  const call = <Result>(
    operation: string,
    name: string,
    run: (key: string, signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> => {
    const what = `${operation} ${name} in the archive ${place.shown}`;
    return failing(what, () => {
      assertArchiveName(name);
      return within(callMs, (signal) => run(`${prefix}${name}`, signal));
    });
  };
  return {
    write: (name, content) => call('writing', name, (key, signal) => put(place, { key, content, signal })),
    read: (name) => call('reading', name, (key, signal) => get(place, { key, signal })),
    remove: (name) => call('removing', name, (key, signal) => remove(place, { key, signal })),
  };
}

function clientOf(forcePathStyle: boolean): S3Client {
  return new S3Client({
    forcePathStyle,
    maxAttempts: ATTEMPTS_MAX,
    retryMode: 'standard',
    requestHandler: { connectionTimeout: CONNECT_MS, requestTimeout: ANSWER_MS, throwOnRequestTimeout: true },
    // Whoever reads a file compares it with the checksum in the catalogue, which the store cannot have changed.
    responseChecksumValidation: 'WHEN_REQUIRED',
  });
}

interface Request {
  readonly key: string;
  readonly signal: AbortSignal;
}

async function put({ bucket, client }: Place, { content, key, signal }: Request & { content: Uint8Array }) {
  // The store refuses what does not arrive as it was sent.
  const ChecksumSHA256 = createHash('sha256').update(content).digest('base64');
  const command = new PutObjectCommand({ Bucket: bucket, Key: key, Body: content, ChecksumSHA256 });
  await client.send(command, { abortSignal: signal });
}

async function get({ bucket, client }: Place, { key, signal }: Request): Promise<Uint8Array | null> {
  try {
    const { Body } = await client.send(new GetObjectCommand({ Bucket: bucket, Key: key }), { abortSignal: signal });
    if (Body === undefined) throw new Error('the answer has no content');
    return await Body.transformToByteArray();
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

async function remove({ bucket, client }: Place, { key, signal }: Request): Promise<void> {
  try {
    await client.send(new DeleteObjectCommand({ Bucket: bucket, Key: key }), { abortSignal: signal });
  } catch (error) {
    // S3 itself answers that it is gone; some that speak like it do not.
    if (!isMissing(error)) throw error;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && error.name === 'NoSuchKey';
}

async function failing<Result>(what: string, run: () => Promise<Result>): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof NightporterError) throw error;
    throw new NightporterError('NP_ARCHIVE_FAILED', `${what}: ${reasonOf(error)}`);
  }
}
