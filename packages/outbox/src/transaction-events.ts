import type { EventHeaders, OutboxDocument } from '@nightporter/contracts';
import { NightporterError, aggregateVersion, type AggregateKey, type EventId } from '@nightporter/protocol';
import type { ClientSession } from 'mongodb';
import type { OutboxCollections } from './collections.js';
import { datedByDatabase } from './database-date.js';
import { documentOf, draftEvent, type Draft, type DraftRules } from './draft.js';
import { insertEvents } from './events.js';
import { raiseHead, refusalOf, type Head } from './heads.js';
import type { EmitRequest, EmittedEvent } from './outbox.js';
import type { Receipt } from './witness.js';

/** More events than this in one transaction are refused: MongoDB advises against transactions of over a thousand documents. */
export const TRANSACTION_EVENTS_MAX = 1000;

export interface TransactionEventsOptions {
  readonly session: ClientSession;
  readonly collections: OutboxCollections;
  readonly rules: DraftRules;
  /** Headers of events that bring none of their own. */
  readonly headers: EventHeaders;
  /** The id of the n-th event of the transaction, the same in every run. */
  readonly idOf: (order: number) => EventId;
  readonly today: () => Date;
}

/** What the first failed emit threw, and the aggregate of its event where it came that far. */
export interface EmitFailure {
  readonly error: unknown;
  readonly aggregate: AggregateKey | null;
}

/** A head as this transaction has it. `stored` lags behind `version` by the events of the aggregate after its first. */
interface HeldHead extends Head {
  readonly stored: number;
}

/**
 * The events of one run of a transaction.
 *
 * `open`: emits are checked at once, then numbered one after another, since a session carries one operation at a time. The first
 * event of an aggregate raises its head in the database, which holds it against everybody else; the later ones are counted here.
 * `flush` awaits the emits under way and writes all documents in one insert, and the heads that were counted on.
 * `closed`: after the flush, or when the run has failed; emits are refused.
 *
 * The first emit that fails dooms the run: the flush rejects with its error, even where the business code caught it or never awaited it.
 */
export class TransactionEvents {
  readonly #options: TransactionEventsOptions;
  readonly #held = new Map<AggregateKey, HeldHead>();
  readonly #documents: OutboxDocument[] = [];
  readonly #receipts: Receipt[] = [];
  #order = 0;
  #story: string | null = null;
  #state: 'open' | 'closed' = 'open';
  #tail: Promise<void> = Promise.resolve();
  #failure: EmitFailure | null = null;

  constructor(options: TransactionEventsOptions) {
    this.#options = options;
  }

  get failure(): EmitFailure | null {
    return this.#failure;
  }

  /** `headers` stand in for those that every event of the transaction has by default. */
  emit(request: EmitRequest, headers: EventHeaders = this.#options.headers): Promise<EmittedEvent> {
    if (this.#state === 'closed') return Promise.reject(transactionEnded());
    const draft = this.#draft(request, headers);
    const emitted = this.#tail.then(() => this.#write(draft));
    this.#tail = emitted.then(
      () => undefined,
      (error: unknown) => {
        this.#failure ??= { error, aggregate: 'refusal' in draft ? null : draft.aggregate };
      },
    );
    return emitted;
  }

  /** Refuses every later emit. */
  close(): void {
    this.#state = 'closed';
  }

  /** Writes what was emitted; the transaction may be committed afterwards. */
  async flush(): Promise<readonly Receipt[]> {
    this.close();
    await this.#tail;
    if (this.#failure !== null) throw this.#failure.error;
    if (this.#documents.length === 0) return [];
    await this.#storeCountedHeads();
    const { session, collections } = this.#options;
    await insertEvents(collections.outbox, session, await datedByDatabase(this.#documents, collections.now));
    return this.#receipts;
  }

  async #storeCountedHeads(): Promise<void> {
    const counted = [...this.#held].filter(([, head]) => head.version !== head.stored);
    if (counted.length === 0) return;
    const { session, collections } = this.#options;
    const updates = counted.map(([aggregate, { version, stored }]) => ({
      updateOne: {
        filter: { _id: aggregate, version: aggregateVersion(stored) },
        update: { $set: { version: aggregateVersion(version) } },
      },
    }));
    const { matchedCount } = await collections.heads.bulkWrite(updates, { session, ordered: true });
    if (matchedCount !== counted.length) throw headMoved();
  }

  /** Done at the call, not at its turn: the caller may change its objects right afterwards. */
  #draft(request: EmitRequest, headers: EventHeaders): Draft | { readonly refusal: unknown } {
    const order = this.#order;
    this.#order += 1;
    try {
      if (order >= TRANSACTION_EVENTS_MAX) throw tooMany();
      const { rules, idOf, today } = this.#options;
      const moment = { eventId: idOf(order), now: today(), headers, story: this.#story };
      const draft = draftEvent(request, rules, moment);
      this.#story ??= draft.correlationId;
      return draft;
    } catch (refusal) {
      return { refusal };
    }
  }

  async #write(draft: Draft | { readonly refusal: unknown }): Promise<EmittedEvent> {
    if (this.#failure !== null) throw this.#failure.error;
    if ('refusal' in draft) throw draft.refusal;
    const head = await this.#nextHead(draft);
    const document = documentOf(draft, head);
    this.#held.set(draft.aggregate, head);
    this.#documents.push(document);
    this.#receipts.push(receiptOf(draft.aggregate, document));
    return emittedOf(document, draft.correlationId);
  }

  async #nextHead({ aggregate, head: request }: Draft): Promise<HeldHead> {
    const held = this.#held.get(aggregate);
    if (held === undefined) {
      const { collections, session } = this.#options;
      const raised = await raiseHead({ heads: collections.heads, session }, request);
      return { version: raised.version, eventKey: raised.eventKey, stored: raised.version };
    }
    const refusal = refusalOf(held, request);
    if (refusal !== null) throw refusal;
    return { ...held, version: held.version + 1 };
  }
}

export function emittedOf(document: OutboxDocument, correlationId: string): EmittedEvent {
  const { _id, aggregateVersion, eventVersion, topic, eventKey, occurredAt } = document;
  return { eventId: _id, aggregateVersion, eventVersion, topic, eventKey, occurredAt, correlationId };
}

function receiptOf(aggregate: AggregateKey, document: OutboxDocument): Receipt {
  const { _id, source, aggregateType, aggregateId, aggregateVersion } = document;
  return { eventId: _id, aggregate, source, aggregateType, aggregateId, aggregateVersion };
}

export function transactionEnded(): NightporterError {
  return new NightporterError(
    'NP_NO_TRANSACTION',
    'emit() was called outside a transaction, or after its transaction had ended; await it inside the work, on the session of a transaction that is under way.',
  );
}

function tooMany(): NightporterError {
  return new NightporterError(
    'NP_EVENT_INVALID',
    `A transaction emitted its event number ${TRANSACTION_EVENTS_MAX + 1}; accepted: ${TRANSACTION_EVENTS_MAX} events for each transaction.`,
  );
}

function headMoved(): NightporterError {
  return new NightporterError(
    'NP_INTERNAL',
    'The head of an aggregate was changed inside a transaction behind the back of its outbox; use one outbox for each transaction.',
  );
}
