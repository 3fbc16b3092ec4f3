import type { OutboxHeadDocument } from '@nightporter/contracts';
import { NightporterError, type AggregateKey } from '@nightporter/protocol';
import type { ClientSession, Collection } from 'mongodb';
import { isDuplicateKey, markTransient } from './failures.js';

/** Version and message group of an aggregate, 0 and any before its first event. */
export type Head = Pick<OutboxHeadDocument, 'eventKey'> & { readonly version: number };

export interface HeadRequest {
  readonly aggregate: AggregateKey;
  /** Version before the event, where the caller insists on one. */
  readonly expectedVersion: number | undefined;
  /** Message group, where the caller insists on one. */
  readonly eventKey: string | undefined;
  readonly defaultEventKey: string;
}

/** Why an aggregate does not take an event, or null when it does. `head` is null before the first event. */
export function refusalOf(head: Head | null, request: HeadRequest): NightporterError | null {
  const { aggregate, expectedVersion, eventKey } = request;
  const version = head?.version ?? 0;
  if (expectedVersion !== undefined && expectedVersion !== version) {
    return new NightporterError(
      'NP_VERSION_EXPECTED',
      `${aggregate} is at version ${version}, and expectedVersion was ${expectedVersion}.`,
    );
  }
  if (head !== null && eventKey !== undefined && eventKey !== head.eventKey) {
    return new NightporterError(
      'NP_EVENT_INVALID',
      `The event key of ${aggregate} is ${JSON.stringify(head.eventKey)} since its first event, and ${JSON.stringify(eventKey)} was given; another message group would break its order.`,
    );
  }
  return null;
}

interface HeadAccess {
  readonly heads: Collection<OutboxHeadDocument>;
  readonly session: ClientSession;
}

/**
 * Takes the next version of an aggregate in the session's transaction. Whoever takes it first holds the head until its transaction
 * ends, and a concurrent one fails with a write conflict, so that versions stay dense.
 *
 * A refusal is thrown before anything is written: a caller that swallows it leaves no hole.
 */
export async function raiseHead(access: HeadAccess, request: HeadRequest): Promise<Head> {
  const { aggregate, expectedVersion, eventKey, defaultEventKey } = request;
  if (expectedVersion !== undefined || eventKey !== undefined) {
    const raised = await raiseIfAsExpected(access, request);
    if (raised !== null) return raised;
  }
  try {
    const raised = await access.heads.findOneAndUpdate(
      { _id: aggregate },
      { $inc: { version: 1 }, $setOnInsert: { eventKey: eventKey ?? defaultEventKey } },
      { session: access.session, upsert: true, returnDocument: 'after' },
    );
    if (raised !== null) return raised;
  } catch (error) {
    // Two first events of one aggregate at once: a conflict like any other, so the transaction is to run again.
    throw isDuplicateKey(error) ? markTransient(error) : error;
  }
  throw new NightporterError('NP_INTERNAL', `The head of ${aggregate} was raised and is not there.`);
}

/** One round trip where the aggregate is as expected; null where it has no event yet and none was expected. */
async function raiseIfAsExpected({ heads, session }: HeadAccess, request: HeadRequest): Promise<Head | null> {
  const { aggregate, expectedVersion, eventKey } = request;
  if (expectedVersion !== 0) {
    const raised = await heads.findOneAndUpdate(
      {
        _id: aggregate,
        ...(expectedVersion === undefined ? {} : { version: expectedVersion as OutboxHeadDocument['version'] }),
        ...(eventKey === undefined ? {} : { eventKey }),
      },
      { $inc: { version: 1 } },
      { session, returnDocument: 'after' },
    );
    if (raised !== null) return raised;
  }
  const refusal = refusalOf(await heads.findOne({ _id: aggregate }, { session }), request);
  if (refusal !== null) throw refusal;
  return null;
}
