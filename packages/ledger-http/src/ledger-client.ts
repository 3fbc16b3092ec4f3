import { ERROR_CODES, NightporterError, type ErrorCode } from '@nightporter/protocol';
import { z } from 'zod';

export interface LedgerServer {
  /** Of the ops API, such as `http://127.0.0.1:3010`. */
  readonly url: string;
  /** A token that the ops API takes for ledgers; null where it asks for none. */
  readonly token: string | null;
  /** The producer, by the name of its database. */
  readonly producer: string;
  /** How long one request may take. */
  readonly timeoutMs?: number;
}

export interface LedgerRequest<Answer> {
  readonly method: 'GET' | 'POST' | 'PUT';
  /** Below the producer. */
  readonly path: string;
  readonly body?: unknown;
  readonly answer: z.ZodType<Answer>;
}

/** Sends one request, and resolves to null where there is no such group. Rejects as the ports say. */
export type LedgerClient = <Answer>(operation: string, request: LedgerRequest<Answer>) => Promise<Answer | null>;

const TIMEOUT_MS = 30_000;

const problemShape = z.object({ type: z.string(), detail: z.string(), code: z.string().optional() });

export function createLedgerClient({ producer, timeoutMs = TIMEOUT_MS, token, url }: LedgerServer): LedgerClient {
  const base = `${baseOf(url)}/v1/producers/${encodeURIComponent(producer)}`;
  return async (operation, { answer, body, method, path }) => {
    const place = `${operation} at ${base}${path}`;
    const response = await send(place, `${base}${path}`, {
      method,
      signal: AbortSignal.timeout(timeoutMs),
      headers: {
        accept: 'application/json',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (response.status !== 200) return refusal(place, response);
    const parsed = answer.safeParse(response.json);
    if (parsed.success) return parsed.data;
    throw unavailable(place, `the answer is not what this version expects: ${parsed.error.issues[0]?.message ?? ''}`);
  };
}

function baseOf(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (parsed !== null && (parsed.protocol === 'http:' || parsed.protocol === 'https:') && parsed.search === '') {
    return parsed.href.replace(/\/+$/, '');
  }
  const message = `The ledger's address is ${JSON.stringify(url)}; accepted: the http or https URL of an ops API, without a query.`;
  throw new NightporterError('NP_CONFIG_INVALID', message);
}

interface Response {
  readonly status: number;
  readonly json: unknown;
}

async function send(place: string, url: string, init: RequestInit): Promise<Response> {
  try {
    const response = await fetch(url, { ...init, redirect: 'error' });
    const text = await response.text();
    return { status: response.status, json: text === '' ? null : parsed(text) };
  } catch (error) {
    throw unavailable(place, reasonOf(error), error);
  }
}

/** Something between us and the ops API may answer with a page. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** `fetch` hides what happened in the cause. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return cause instanceof Error ? cause.message : String(cause);
}

/** Null where the group is unknown; rejects for every other answer. */
function refusal(place: string, { json, status }: Response): null {
  const problem = problemShape.safeParse(json);
  if (!problem.success) throw unavailable(place, `status ${status} without a problem document`);
  const { code, detail, type } = problem.data;
  if (type === 'urn:nightporter:problem:group-unknown') return null;
  if (status === 401 || status === 403) {
    const message = `${place} is refused (${status}): ${detail}. Accepted: a token that the ops API takes for ledgers.`;
    throw new NightporterError('NP_CONFIG_INVALID', message);
  }
  // A name that leads elsewhere stays wrong, however often it is asked.
  if (status === 421 || type === 'urn:nightporter:problem:producer-unknown') {
    throw new NightporterError('NP_CONFIG_INVALID', `${place}: ${detail}`);
  }
  if (code !== undefined && isErrorCode(code)) throw new NightporterError(code, `${place}: ${detail}`);
  throw unavailable(place, `status ${status}: ${detail}`);
}

function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERROR_CODES, code);
}

function unavailable(place: string, reason: string, cause?: unknown): NightporterError {
  return new NightporterError('NP_STORE_UNAVAILABLE', `${place}: ${reason}`, { cause });
}
