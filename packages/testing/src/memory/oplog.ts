import type { CapturedRow, CaptureBatch } from '@nightporter/relay';
import {
  NightporterError,
  Wakeup,
  resumeToken,
  type EventId,
  type ResumeToken,
  type Slot,
} from '@nightporter/protocol';
import type { OutboxRow } from '@nightporter/contracts';

/** What the change stream reports: an inserted row as inserted, another write (which only moves the token), or a dropped outbox. */
type OplogEntry =
  { readonly kind: 'insert'; readonly row: OutboxRow } | { readonly kind: 'write' } | { readonly kind: 'drop' };

/** A place in a stream. It is the reader's: a read whose answer is lost moves nothing. */
export interface StreamPlace {
  readonly slots: ReadonlySet<Slot>;
  readonly position: number;
  /** Streams opened before the last break are over. */
  readonly generation: number;
}

export interface OplogOptions {
  /** What happens to an open stream whose next entry was pruned: it fails (MongoDB), or it skips without a word (SecantusDB). */
  readonly whenOvertaken: 'fail' | 'skip';
  /** Rows in one batch at most. */
  readonly batchMax: number;
}

/** The database's log of changes: tokens are opaque, old entries can be pruned, and open streams can be broken. */
export class MemoryOplog {
  readonly changes = new Wakeup();
  options: OplogOptions;
  /** Told of rows that an overtaken stream skipped. */
  onSkipped: (eventIds: readonly EventId[]) => void = () => undefined;
  readonly #entries: OplogEntry[] = [];
  readonly #indexByToken = new Map<ResumeToken, number>();
  #prunedBefore = 0;
  #generation = 0;

  constructor(options: OplogOptions = { whenOvertaken: 'fail', batchMax: 100 }) {
    this.options = options;
  }

  get length(): number {
    return this.#entries.length;
  }

  append(entry: OplogEntry): void {
    this.#entries.push(entry);
    this.changes.ring();
  }

  /** Forgets the history before the `keep` newest entries. */
  prune(keep: number): void {
    this.#prunedBefore = Math.max(this.#prunedBefore, this.#entries.length - keep);
    this.changes.ring();
  }

  /** Ends every open stream; a new one can resume. */
  breakStreams(): void {
    this.#generation += 1;
    this.changes.ring();
  }

  open(request: { after: ResumeToken | null; slots: readonly Slot[] }): StreamPlace {
    const position = request.after === null ? this.#entries.length : this.positionOf(request.after);
    if (position === undefined || position < this.#prunedBefore) {
      throw captureLost(`resume token ${String(request.after)} is unknown or its history is pruned`);
    }
    return { slots: new Set(request.slots), position, generation: this.#generation };
  }

  /** What lies behind a place, and the place behind that. */
  read(place: StreamPlace): { batch: CaptureBatch; next: StreamPlace } {
    if (place.generation < this.#generation) throw captureLost('the stream was broken');
    let position = place.position < this.#prunedBefore ? this.#overtake(place) : place.position;
    const rows: CapturedRow[] = [];
    let disturbed = false;
    while (position < this.#entries.length && rows.length < this.options.batchMax) {
      const entry = this.#entries[position];
      position += 1;
      if (entry?.kind === 'drop') disturbed = true;
      if (entry?.kind !== 'insert' || !place.slots.has(entry.row.slot)) continue;
      rows.push({ row: entry.row, token: this.#tokenAt(position) });
    }
    const lagMs = position === this.#entries.length ? 0 : null;
    return { batch: { rows, token: this.#tokenAt(position), lagMs, disturbed }, next: { ...place, position } };
  }

  /** The rows whose inserts lie before a token, oldest first. */
  rowsCoveredBy(token: ResumeToken): readonly OutboxRow[] {
    const covered = this.#entries.slice(0, this.positionOf(token) ?? 0);
    return covered.flatMap((entry) => (entry.kind === 'insert' ? [entry.row] : []));
  }

  positionOf(token: ResumeToken): number | undefined {
    return this.#indexByToken.get(token);
  }

  #overtake(place: StreamPlace): number {
    if (this.options.whenOvertaken === 'fail') throw captureLost('the stream fell behind the pruned history');
    const skipped = this.#entries.slice(place.position, this.#prunedBefore);
    this.onSkipped(skipped.flatMap((entry) => (entry.kind === 'insert' ? [entry.row.eventId] : [])));
    return this.#prunedBefore;
  }

  /** Tokens are scrambled, so that whoever compares them goes wrong soon. */
  #tokenAt(position: number): ResumeToken {
    const scrambled = (Math.imul(position + 1, 0x9e3779b1) >>> 0).toString(16).padStart(8, '0');
    const token = resumeToken(`token-${scrambled}`);
    this.#indexByToken.set(token, position);
    return token;
  }
}

function captureLost(message: string): NightporterError {
  return new NightporterError('NP_CAPTURE_LOST', message);
}
