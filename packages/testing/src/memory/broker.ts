import { Wakeup, type Random } from '@nightporter/protocol';

/** A message as the broker keeps it. */
export interface StoredMessage {
  readonly messageId: string;
  readonly messageGroup: string;
  readonly body: Uint8Array;
  readonly properties: Readonly<Record<string, string>>;
}

/** A message handed out, with the receipt that names this hand-out. */
export interface HandedOut extends StoredMessage {
  readonly deliveryAttempt: number;
  readonly receipt: Receipt;
}

export interface Receipt {
  readonly queue: number;
  readonly offset: number;
  readonly lockId: number;
}

interface Lock {
  readonly id: number;
  readonly end: number;
  readonly acknowledged: Set<number>;
  untilMs: number;
}

/** What a group knows of one queue. */
interface QueueProgress {
  committed: number;
  persisted: number;
  lock: Lock | null;
  /** What was handed out last, and how often in a row. */
  last: { readonly first: number; readonly end: number; readonly attempt: number } | null;
}

/**
 * One FIFO topic. A message group lives on one queue as long as the queue count stays. A group holds a whole queue from a
 * receive until everything handed out is acknowledged, or until its invisibility ends: then all from the first
 * unacknowledged message on comes again, what was acknowledged behind it included. Deliveries are counted by queue: the count
 * rises while the very same messages are handed out, and starts anew when others join them.
 */
export class MemoryTopic {
  readonly changes = new Wakeup();
  /** Told of every acknowledgement, those with a stale receipt included. */
  onAcknowledged: (group: string, message: StoredMessage) => void = () => undefined;
  readonly #queues: StoredMessage[][];
  readonly #groups = new Map<string, QueueProgress[]>();
  readonly #clock: () => number;
  readonly #random: Random;
  #writeQueues: number;
  #locks = 0;

  constructor(options: { clock: () => number; random: Random; queues: number }) {
    this.#clock = options.clock;
    this.#random = options.random;
    this.#writeQueues = options.queues;
    this.#queues = Array.from({ length: options.queues }, () => []);
  }

  /** Moves message groups: what is stored stays where it is. */
  changeQueueCount(queues: number): void {
    while (this.#queues.length < queues) this.#queues.push([]);
    this.#writeQueues = queues;
  }

  append(message: StoredMessage): void {
    this.#queues[hashOf(message.messageGroup) % this.#writeQueues]?.push(message);
    this.changes.ring();
  }

  messages(): readonly StoredMessage[] {
    return this.#queues.flat();
  }

  receive(request: { group: string; max: number; invisibleMs: number }): readonly HandedOut[] {
    const progress = this.#progressOf(request.group);
    for (const queue of this.#shuffledQueues()) {
      const handedOut = this.#handOut(progress[queue], queue, request);
      if (handedOut.length > 0) return handedOut;
    }
    return [];
  }

  acknowledge(group: string, receipts: readonly Receipt[]): void {
    for (const { queue, offset, lockId } of receipts) {
      const progress = this.#progressOf(group)[queue];
      const message = this.#queues[queue]?.[offset];
      if (message !== undefined) this.onAcknowledged(group, message);
      if (progress?.lock?.id !== lockId) continue;
      progress.lock.acknowledged.add(offset);
      if (firstUnacknowledged(progress) === progress.lock.end) this.#unlock(progress);
    }
  }

  /** Keeps the queue locked from now on; earlier receipts become stale. */
  extend(group: string, receipts: readonly Receipt[], invisibleMs: number): readonly Receipt[] {
    const renewed = new Map<number, Lock>();
    return receipts.map((receipt) => {
      const progress = this.#progressOf(group)[receipt.queue];
      const lock = progress?.lock;
      if (progress === undefined || !lock) return receipt;
      if (lock.id !== receipt.lockId && lock !== renewed.get(receipt.lockId)) return receipt;
      const next = renewed.get(receipt.lockId) ?? {
        ...lock,
        id: this.#nextLock(),
        untilMs: this.#clock() + invisibleMs,
      };
      renewed.set(receipt.lockId, next);
      progress.lock = next;
      return { ...receipt, lockId: next.id };
    });
  }

  /** Takes the next messages of one queue from a group for good, in whose hands they may be: dead-lettered, expired, or skipped. */
  giveUp(group: string, count: number): readonly StoredMessage[] {
    for (const queue of this.#shuffledQueues()) {
      const progress = this.#progressOf(group)[queue];
      const lost = this.#queues[queue]?.slice(progress?.committed, (progress?.committed ?? 0) + count) ?? [];
      if (progress === undefined || lost.length === 0) continue;
      progress.lock = null;
      progress.committed += lost.length;
      progress.persisted = progress.committed;
      this.changes.ring();
      return lost;
    }
    return [];
  }

  /** As a new group begins: what is stored already it does not get. */
  skipAll(group: string): void {
    for (const [queue, progress] of this.#progressOf(group).entries()) {
      progress.committed = this.#queues[queue]?.length ?? 0;
      progress.persisted = progress.committed;
    }
  }

  /** How many messages a group has not acknowledged. */
  backlogOf(group: string): number {
    return this.#progressOf(group).reduce((sum, progress, index) => {
      return sum + (this.#queues[index]?.length ?? 0) - progress.committed;
    }, 0);
  }

  /** Remembers the offsets of now, as the broker does every few seconds. */
  persist(): void {
    for (const progress of [...this.#groups.values()].flat()) progress.persisted = progress.committed;
  }

  /** Forgets every lock, and every offset since the last {@link persist}. */
  restart(): void {
    for (const progress of [...this.#groups.values()].flat()) {
      progress.committed = progress.persisted;
      progress.lock = null;
    }
    this.changes.ring();
  }

  #handOut(
    progress: QueueProgress | undefined,
    queue: number,
    { max, invisibleMs }: { max: number; invisibleMs: number },
  ): readonly HandedOut[] {
    if (progress === undefined) return [];
    if (progress.lock !== null) {
      if (progress.lock.untilMs > this.#clock()) return [];
      this.#unlock(progress);
    }
    const first = progress.committed;
    const messages = this.#queues[queue]?.slice(first, first + max) ?? [];
    if (messages.length === 0) return [];
    const id = this.#nextLock();
    const end = first + messages.length;
    progress.lock = { id, end, acknowledged: new Set(), untilMs: this.#clock() + invisibleMs };
    const isAgain = progress.last?.first === first && progress.last.end === end;
    const deliveryAttempt = isAgain ? (progress.last?.attempt ?? 0) + 1 : 1;
    progress.last = { first, end, attempt: deliveryAttempt };
    return messages.map((message, index) => {
      return { ...message, deliveryAttempt, receipt: { queue, offset: first + index, lockId: id } };
    });
  }

  #unlock(progress: QueueProgress): void {
    progress.committed = firstUnacknowledged(progress);
    progress.lock = null;
    this.changes.ring();
  }

  #progressOf(group: string): QueueProgress[] {
    const known = this.#groups.get(group) ?? [];
    this.#groups.set(group, known);
    while (known.length < this.#queues.length) {
      known.push({ committed: 0, persisted: 0, lock: null, last: null });
    }
    return known;
  }

  #shuffledQueues(): readonly number[] {
    const order = this.#queues.map((_, index) => ({ index, key: this.#random() }));
    return order.sort((left, right) => left.key - right.key).map(({ index }) => index);
  }

  #nextLock(): number {
    this.#locks += 1;
    return this.#locks;
  }
}

function firstUnacknowledged(progress: QueueProgress): number {
  let offset = progress.committed;
  while (progress.lock?.acknowledged.has(offset) === true) offset += 1;
  return offset;
}

function hashOf(text: string): number {
  let hash = 7;
  for (let index = 0; index < text.length; index += 1) hash = (Math.imul(hash, 31) + text.charCodeAt(index)) >>> 0;
  return hash;
}
