import type { EventHeaders } from '@nightporter/contracts';
import { isNightporterError } from '@nightporter/protocol';
import type { ClientSession } from 'mongodb';
import type { OutboxCollections } from './collections.js';
import { datedByDatabase } from './database-date.js';
import { documentOf, draftEvent, type Draft, type DraftRules } from './draft.js';
import { insertEvents } from './events.js';
import { failureOf, markTransient } from './failures.js';
import { raiseHead } from './heads.js';
import type { EmitRequest, EmittedEvent } from './outbox.js';
import { emittedOf, transactionEnded } from './transaction-events.js';
import type { OutboxWorld } from './world.js';

export interface OwnSessionOptions {
  readonly collections: OutboxCollections;
  readonly rules: DraftRules;
  readonly world: OutboxWorld;
}

export type EmitOnSession = (
  session: ClientSession,
  request: EmitRequest,
  headers: EventHeaders,
) => Promise<EmittedEvent>;

/**
 * Emits on sessions whose transactions others begin and commit. Nobody tells us before the commit, so every event is written at
 * once, in two round trips; emits on one session wait for each other, since a session carries one operation at a time.
 */
export function createOwnSessionEmit(options: OwnSessionOptions): EmitOnSession {
  const tails = new WeakMap<ClientSession, Promise<unknown>>();
  return async (session, request, headers) => {
    assertInTransaction(session);
    const { rules, world } = options;
    // Drafted before anything is awaited: the caller may change its objects right after the call.
    const draft = draftEvent(request, rules, { eventId: world.newEventId(), now: world.today(), headers, story: null });
    const emitted = (tails.get(session) ?? Promise.resolve()).then(() => write(options.collections, session, draft));
    tails.set(
      session,
      emitted.catch(() => undefined),
    );
    return emitted;
  };
}

async function write(collections: OutboxCollections, session: ClientSession, draft: Draft): Promise<EmittedEvent> {
  assertInTransaction(session);
  try {
    const document = documentOf(draft, await raiseHead({ heads: collections.heads, session }, draft.head));
    await insertEvents(collections.outbox, session, await datedByDatabase([document], collections.now));
    return emittedOf(document, draft.correlationId);
  } catch (error) {
    if (isNightporterError(error)) throw error;
    await abortOnServer(collections, session);
    // The driver does not label every lost connection, and its own loop goes by the label.
    throw failureOf(error).kind === 'fatal' ? error : markTransient(error);
  }
}

/**
 * After a failure of the database the head may be raised without its event: were the error swallowed and the transaction committed, the
 * versions would have a hole. So the server is told to abort it. The session is not: after its own abortTransaction() the driver would
 * carry out the caller's next statement outside any transaction, whereas now every statement, and the commit, is refused by the server.
 * Only where the server cannot be told, the session is ended, which lets nothing through at all.
 */
async function abortOnServer({ admin }: OutboxCollections, session: ClientSession): Promise<void> {
  try {
    await admin.command({ abortTransaction: 1 }, { session });
  } catch (error) {
    if (failureOf(error).kind !== 'aborted') await session.endSession();
  }
}

function assertInTransaction(session: ClientSession): void {
  if (session.hasEnded || !session.inTransaction()) throw transactionEnded();
}
