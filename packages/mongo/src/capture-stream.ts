import type { OutboxDocument } from '@nightporter/contracts';
import { NightporterError, type Namespace, type ResumeToken } from '@nightporter/protocol';
import type { CaptureBatch, CaptureStream, CapturedRow } from '@nightporter/relay';
import {
  ReadConcern,
  type ChangeStream,
  type ChangeStreamDocument,
  type ChangeStreamOptions,
  type Document,
  type MongoClient,
  type Timestamp,
} from 'mongodb';
import { captureError, captureLost, isRefusal } from './capture-faults.js';
import { capturedOf } from './capture-pipeline.js';
import type { DatabaseClock } from './database-clock.js';
import { messageOf, storeUnavailable } from './driver-errors.js';
import { outboxRow } from './outbox-rows.js';
import { tokenDocument, tokenText } from './resume-token.js';

type Change = ChangeStreamDocument<OutboxDocument>;
type Changes = ChangeStream<OutboxDocument, Change>;

/**
 * Outboxes whose indexes are to be created again, each with its last disturbance. Shared by all streams of a capture: the one that was
 * told of it may be closed before that succeeds, and the next goes on behind it.
 */
export type Unindexed = Map<Namespace, symbol>;

export interface CaptureStreamOptions {
  readonly client: MongoClient;
  readonly namespaces: readonly Namespace[];
  readonly pipeline: Document[];
  readonly after: ResumeToken | null;
  /** To tell how far behind a change is. */
  readonly clock: DatabaseClock;
  readonly unindexed: Unindexed;
  /** Gives an outbox back the indexes that it lost with a drop. */
  readonly recreate: (namespace: Namespace) => Promise<void>;
  readonly onWarning: (warning: NightporterError) => void;
}

/** How long the server waits for a change before it answers with none. */
const AWAIT_MS = 1_000;
/** Changes in one answer of the server, which keeps an answer below 16 MB besides. */
const BATCH_MAX = 500;

/** The first change of a driver's stream: it opens at the first call, which is under way while `open` waits for the server's answer. */
type FirstChange =
  { readonly kind: 'change'; readonly change: Change | null } | { readonly kind: 'error'; readonly error: unknown };

/**
 * A change stream, read batch by batch.
 *
 * It is *open* while it has a driver's stream; *broken* after a failure, when the next read opens a new one behind what was delivered, so
 * that neither a failed read nor the rows that it had begun to collect are lost; *lost* once its token cannot be resumed; and *closed*.
 * The driver resumes by itself after most failures; what gets here is what it gave up.
 */
export class MongoCaptureStream implements CaptureStream {
  readonly #options: CaptureStreamOptions;
  readonly #place: string;
  #changes: Changes | undefined;
  #first: Promise<FirstChange> | undefined;
  /** Behind everything delivered. */
  #token: ResumeToken | null;
  #reading: Promise<CaptureBatch> | undefined;
  #lost: NightporterError | undefined;
  /** The server has refused to go on from the token, and has not gone on since. */
  #wasRefused = false;
  /** The driver's stream has answered since it was opened. */
  #hasAnswered = false;
  #isClosed = false;
  readonly #warned = new Set<Namespace>();

  constructor(options: CaptureStreamOptions) {
    this.#options = options;
    this.#place = options.namespaces.join(', ');
    this.#token = options.after;
  }

  /** Resolves once the server has opened the stream. */
  async open(): Promise<void> {
    const changes = this.#watch();
    this.#changes = changes;
    this.#hasAnswered = false;
    // The server's first answer brings a token, or changes.
    const opened = new Promise<null>((resolve) => {
      changes.once('resumeTokenChanged', () => {
        resolve(null);
      });
    });
    const first = changes.tryNext().then(
      (change): FirstChange => ({ kind: 'change', change }),
      (error: unknown): FirstChange => ({ kind: 'error', error }),
    );
    this.#first = first;
    const failed = await Promise.race([opened, first]);
    if (failed?.kind === 'error') throw await this.#failure(failed.error, { isSuspect: this.#token !== null });
    this.#token ??= tokenOf(changes);
  }

  /** A read that comes while another is under way, since its caller has given that up, gets the same batch. */
  read(): Promise<CaptureBatch> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#dispose();
  }

  #watch(): Changes {
    const { client, pipeline } = this.#options;
    const options: ChangeStreamOptions = {
      maxAwaitTimeMS: AWAIT_MS,
      batchSize: BATCH_MAX,
      readConcern: new ReadConcern('majority'),
      readPreference: 'primary',
    };
    if (this.#token === null) return client.watch<OutboxDocument, Change>(pipeline, options);
    const startAfter = tokenDocument(this.#token);
    if (startAfter === null) throw captureLost(this.#place, new Error(`${this.#token} is not a resume token`));
    // Unlike resumeAfter, startAfter also goes on behind the end of another stream.
    return client.watch<OutboxDocument, Change>(pipeline, { ...options, startAfter });
  }

  async #read(): Promise<CaptureBatch> {
    if (this.#isClosed) throw new NightporterError('NP_STORE_UNAVAILABLE', `The stream of ${this.#place} is closed.`);
    if (this.#lost !== undefined) throw this.#lost;
    if (this.#changes === undefined) await this.open();
    try {
      const batch = await this.#collect();
      this.#token = batch.token ?? this.#token;
      this.#wasRefused = false;
      this.#hasAnswered = true;
      await this.#reindex();
      return batch;
    } catch (error) {
      throw await this.#failure(error, { isSuspect: this.#wasRefused });
    }
  }

  async #collect(): Promise<CaptureBatch> {
    const changes = this.#opened();
    const rows: CapturedRow[] = [];
    let disturbed = false;
    let last: Change | null = null;
    for (let change = await this.#next(); change !== null; change = await this.#next()) {
      last = change;
      const captured = capturedOf(change, this.#options.namespaces);
      if (captured.kind === 'end') {
        this.#lost = captureLost(this.#place, new Error(`it ended with ${change.operationType}`));
        if (rows.length === 0 && !disturbed) throw this.#lost;
        break;
      }
      if (captured.kind === 'insert') {
        rows.push({ row: outboxRow(captured.namespace, captured.document, null), token: tokenText(change._id) });
      } else {
        disturbed = true;
        for (const namespace of captured.namespaces) this.#options.unindexed.set(namespace, Symbol(namespace));
      }
      if (changes.bufferedCount() === 0) break;
    }
    if (last === null && changes.closed) throw this.#ended();
    const token = tokenOf(changes) ?? rows.at(-1)?.token ?? null;
    return { rows, token, lagMs: await this.#lagBehind(last), disturbed };
  }

  /** Against the database's clock, which is asked every half minute; a figure that cannot be had is not worth a failed read. */
  async #lagBehind(change: Change | null): Promise<number | null> {
    if (change === null) return 0;
    const atMs = timeOf(change);
    if (atMs === null) return null;
    try {
      return Math.max(0, (await this.#options.clock.estimate()).getTime() - atMs);
    } catch {
      return null;
    }
  }

  async #next(): Promise<Change | null> {
    const first = await this.#first;
    this.#first = undefined;
    if (first === undefined) return this.#opened().tryNext();
    if (first.kind === 'error') throw first.error;
    return first.change;
  }

  #opened(): Changes {
    if (this.#changes === undefined) throw new NightporterError('NP_INTERNAL', `${this.#place}: no stream is open`);
    return this.#changes;
  }

  /**
   * The server has ended the cursor without an error, as some do when it is killed under a read. The driver's stream would then be silent
   * for ever. One that never answered would end like that again.
   */
  #ended(): NightporterError {
    const reason = new Error('the server has ended its cursor');
    if (!this.#hasAnswered) return captureLost(this.#place, reason);
    return storeUnavailable(`reading the change stream of ${this.#place}`, reason);
  }

  /** Breaks the stream, or ends it where it is lost. */
  async #failure(error: unknown, { isSuspect }: { isSuspect: boolean }): Promise<unknown> {
    await this.#dispose();
    if (isRefusal(error)) this.#wasRefused = true;
    const failure = captureError(error, { isSuspect, place: this.#place });
    if (failure instanceof NightporterError && failure.code === 'NP_CAPTURE_LOST') this.#lost = failure;
    return failure;
  }

  async #dispose(): Promise<void> {
    const changes = this.#changes;
    this.#changes = undefined;
    this.#first = undefined;
    await changes?.close();
  }

  /** An outbox that was dropped and comes back with the next insert has no indexes. What fails here is tried at the next read, of whichever stream. */
  async #reindex(): Promise<void> {
    const { unindexed } = this.#options;
    for (const [namespace, disturbance] of [...unindexed]) {
      try {
        await this.#options.recreate(namespace);
        // Another stream may have told of the next disturbance meanwhile.
        if (unindexed.get(namespace) === disturbance) unindexed.delete(namespace);
        this.#warned.delete(namespace);
      } catch (error) {
        if (this.#warned.has(namespace)) continue;
        this.#warned.add(namespace);
        const message = `The indexes of ${namespace} cannot be created again: ${messageOf(error)}`;
        this.#options.onWarning(new NightporterError('NP_STORE_UNAVAILABLE', message, { cause: error }));
      }
    }
  }
}

/** When a change was committed. `clusterTime` knows seconds only. */
function timeOf(change: Change): number | null {
  // Older servers have no wallTime, whatever the type says.
  const { clusterTime, wallTime } = change as { clusterTime?: Timestamp; wallTime?: Date };
  if (wallTime !== undefined) return wallTime.getTime();
  return clusterTime === undefined ? null : clusterTime.t * 1_000;
}

/** Behind everything that the driver's stream has handed out; null while the server has given none. */
function tokenOf(changes: Changes): ResumeToken | null {
  const token: unknown = changes.resumeToken;
  return token === null || token === undefined ? null : tokenText(token);
}
