import type { EventEnvelope, PublicationForm } from '@nightporter/contracts';
import {
  CONSUMER_COLLECTIONS,
  durableDatabase,
  storedEnvelope,
  type GroupActionDocument,
  type OperatorNote,
  type ParkedDocument,
  type SetAsideDocument,
  type StoredEvent,
} from '@nightporter/mongo';
import type { AggregateKey, EventId } from '@nightporter/protocol';
import type { Collection, MongoClient } from 'mongodb';

/** A parked event that waits for an operator; its aggregate waits with it, in this group. */
export interface DeadLetter {
  readonly eventId: EventId;
  readonly eventType: string;
  readonly aggregate: AggregateKey;
  readonly version: number;
  /** What a decision is made upon: it counts only while the row still has it. */
  readonly revision: number;
  readonly attempts: number;
  readonly failure: ParkedDocument['failure'];
  readonly firstFailedAt: Date | null;
  readonly lastFailedAt: Date | null;
  readonly parkedAt: Date;
  readonly message: StoredMessage;
  /** The message as it came, and who changed it, where an operator has edited it. */
  readonly edited: { readonly original: StoredMessage; readonly edit: OperatorNote } | null;
}

export interface StoredMessage {
  readonly messageId: string;
  readonly topic: string;
  readonly form: PublicationForm;
  readonly digest: string;
  readonly envelope: EventEnvelope;
}

/** A message without a place in any sequence: unreadable, or in conflict with another event. It holds nothing up. */
export interface SetAsideMessage {
  readonly id: string;
  readonly topic: string;
  readonly messageId: string;
  readonly body: Uint8Array;
  readonly properties: Readonly<Record<string, string>>;
  readonly failure: SetAsideDocument['failure'];
  /** How often it came: what a dismissal is made upon. */
  readonly count: number;
  readonly firstFailedAt: Date;
  readonly lastFailedAt: Date;
}

export interface LedgerCollections {
  readonly parked: Collection<ParkedDocument>;
  readonly aside: Collection<SetAsideDocument>;
  readonly actions: Collection<GroupActionDocument>;
}

export function ledgerCollections(client: MongoClient, database: string): LedgerCollections {
  const db = durableDatabase(client, database);
  return {
    parked: db.collection(CONSUMER_COLLECTIONS.parked),
    aside: db.collection(CONSUMER_COLLECTIONS.parked),
    actions: db.collection(CONSUMER_COLLECTIONS.actions),
  };
}

export function deadLetterOf(document: ParkedDocument): DeadLetter {
  const { event, original, edit, aggregate, version, revision, attempts } = document;
  const { failure, firstFailedAt, lastFailedAt, parkedAt } = document;
  return {
    eventId: event.eventId,
    eventType: event.eventType,
    aggregate,
    version,
    revision,
    attempts,
    failure,
    firstFailedAt,
    lastFailedAt,
    parkedAt,
    message: messageOf(document, event),
    edited: original === undefined || edit === undefined ? null : { original: messageOf(document, original), edit },
  };
}

function messageOf({ aggregate, version }: ParkedDocument, event: StoredEvent): StoredMessage {
  const { messageId, topic, form, digest } = event;
  return { messageId, topic, form, digest, envelope: storedEnvelope({ aggregate, version, event }).envelope };
}

export function setAsideOf(document: SetAsideDocument): SetAsideMessage {
  const { _id: id, topic, messageId, body, properties, failure, count, firstFailedAt, lastFailedAt } = document;
  const pairs = properties.map(({ name, value }): [string, string] => [name, value]);
  return {
    id,
    topic,
    messageId,
    body: body.value(),
    properties: Object.fromEntries(pairs),
    failure,
    count,
    firstFailedAt,
    lastFailedAt,
  };
}
