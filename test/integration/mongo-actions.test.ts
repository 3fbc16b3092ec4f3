import {
  createOutboxActions,
  createRelayStores,
  ensureOutboxCollections,
  ensureRelayCollections,
  pauseRelay,
  resumeRelay,
  type OperatorActionDocument,
} from '@nightporter/mongo';
import { epoch, namespace, type EventId, type Namespace } from '@nightporter/protocol';
import { PublishError, createRelay, type PublishRequest } from '@nightporter/relay';
import { systemClock } from '@nightporter/runtime';
import { eventually } from '@nightporter/testing/conformance';
import { describe, expect, it } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { commitSamples, databaseOf, outboxOf } from '../conformance/mongo-samples.js';

const shared = sharedDatabase();
const ada = { by: 'ada', reason: 'the broker is moved' };
const bob = { by: 'bob', reason: '$bob said so' };

async function actionsOf(database: string): Promise<readonly OperatorActionDocument[]> {
  const actions = shared.client().db(database).collection<OperatorActionDocument>('operator_actions');
  return actions.find().sort({ at: 1, _id: 1 }).toArray();
}

describe('a pause', () => {
  async function relayDatabase(): Promise<string> {
    const name = shared.database('relay');
    await ensureRelayCollections(shared.client(), name);
    return name;
  }

  it('and its end are on record, with who, why and when', async () => {
    const name = await relayDatabase();
    const before = Date.now();
    expect(await pauseRelay(shared.client(), name, { topic: 'orders-events', ...ada })).toEqual({ kind: 'done' });
    expect(await resumeRelay(shared.client(), name, { topic: 'orders-events', ...bob })).toEqual({ kind: 'done' });
    const actions = await actionsOf(name);
    expect(actions).toMatchObject([
      { action: 'pause', target: 'topic:orders-events', ...ada },
      { action: 'resume', target: 'topic:orders-events', ...bob },
    ]);
    expect(Math.abs(actions[0]!.at.getTime() - before)).toBeLessThan(60_000);
  });

  it('by two operators at once is one pause, and one of them is told who was first', async () => {
    const name = await relayDatabase();
    const outcomes = await Promise.all(
      [ada, bob].map((operator) => pauseRelay(shared.client(), name, { topic: null, ...operator })),
    );
    expect(outcomes.map(({ kind }) => kind).sort()).toEqual(['done', 'unchanged']);
    const [action, ...more] = await actionsOf(name);
    expect(more).toEqual([]);
    const loser = outcomes.find((outcome) => outcome.kind === 'unchanged');
    expect(loser?.standing).toMatchObject({ by: action!.by, reason: action!.reason });
  });

  it('that nobody made is resumed without a trace', async () => {
    const name = await relayDatabase();
    const outcome = await resumeRelay(shared.client(), name, { topic: null, ...ada });
    expect(outcome).toEqual({ kind: 'unchanged', standing: null });
    expect(await actionsOf(name)).toEqual([]);
  });

  it('without a name, a reason or a topic that can be is refused, and nothing is paused', async () => {
    const name = await relayDatabase();
    const wrong = [
      { topic: null, by: ' ', reason: 'why' },
      { topic: null, by: 'ada', reason: '' },
      { topic: null, by: 'ada', reason: 'x'.repeat(2_001) },
      { topic: 'a b', ...ada },
    ];
    for (const request of wrong) {
      await expect(pauseRelay(shared.client(), name, request)).rejects.toMatchObject({ code: 'NP_ACTION_INVALID' });
    }
    const { controls } = createRelayStores({ client: shared.client(), database: name, namespaces: [] });
    expect(await controls.readPause()).toEqual({ all: false, topics: [] });
  });
});

describe('an action on an event', () => {
  it('is on record with who, why and when, and so is the skip in the row', async () => {
    const { outbox, eventId } = await deadEvent();
    const actions = createOutboxActions(shared.client());
    const request = { namespace: outbox, eventId };
    expect(await actions.skip({ ...request, ...bob })).toMatchObject({ kind: 'done' });
    expect(await actions.retry({ ...request, ...ada })).toEqual({ kind: 'refused', status: 'PENDING' });
    expect(await actionsOf(databaseOf(outbox))).toMatchObject([
      { action: 'skip-event', target: eventId, ...bob, at: expect.any(Date) },
    ]);
    const row = await outboxOf(shared.client(), outbox).findOne({ _id: eventId });
    expect(row).toMatchObject({ status: 'PENDING', unsettled: true, retryCount: 0, nextRetryAt: null });
    expect(row?.skip).toMatchObject({ ...bob, at: expect.any(Date) });
  });

  it('by many operators at once is done once, and on record once', async () => {
    const { outbox, eventId } = await deadEvent();
    const actions = createOutboxActions(shared.client());
    const acts = Array.from({ length: 6 }, (_, index) =>
      actions[index % 2 === 0 ? 'retry' : 'skip']({
        namespace: outbox,
        eventId,
        by: `op ${index}`,
        reason: 'now',
      }),
    );
    const outcomes = await Promise.all(acts);
    const winner = outcomes.findIndex(({ kind }) => kind === 'done');
    expect(outcomes.filter(({ kind }) => kind === 'done')).toHaveLength(1);
    const [action, ...more] = await actionsOf(databaseOf(outbox));
    expect(more).toEqual([]);
    expect(action).toMatchObject({ by: `op ${winner}`, action: winner % 2 === 0 ? 'retry-event' : 'skip-event' });
    const row = await outboxOf(shared.client(), outbox).findOne({ _id: eventId });
    expect(row?.skip === null || row?.skip === undefined).toBe(winner % 2 === 0);
  });

  it('without a name or a reason is refused, and the row stays DEAD', async () => {
    const { outbox, eventId } = await deadEvent();
    const actions = createOutboxActions(shared.client());
    for (const operator of [
      { by: '', reason: 'why' },
      { by: 'ada', reason: '  ' },
    ]) {
      const skip = actions.skip({ namespace: outbox, eventId, ...operator });
      await expect(skip).rejects.toMatchObject({ code: 'NP_ACTION_INVALID' });
    }
    expect(await outboxOf(shared.client(), outbox).findOne({ _id: eventId })).toMatchObject({ status: 'DEAD' });
  });

  it('has the relay, and nobody else, send the event or its tombstone, and then what waited behind it', async () => {
    const client = shared.client();
    const outbox = await emptyOutbox();
    const samples = ['retried', 'skipped'].flatMap((aggregateId) =>
      [1, 2].map(() => ({ namespace: outbox, aggregateId })),
    );
    const [retried, afterRetried, skipped, afterSkipped] = await commitSamples(client, samples);
    const refused = new Set([retried, skipped]);
    const sent: string[] = [];
    const relayDatabase = shared.database('relay');
    await ensureRelayCollections(client, relayDatabase);
    const relay = createRelay(
      {
        ...createRelayStores({ client, database: relayDatabase, namespaces: [outbox] }),
        publisher: {
          publish({ row }: PublishRequest) {
            if (row.form === 'original' && refused.has(row.eventId)) {
              const refusal = { failure: 'permanent', answered: true, message: 'not like this' } as const;
              return Promise.reject(new PublishError(refusal));
            }
            sent.push(`${row.eventId} ${row.form}`);
            return Promise.resolve({ messageId: `message ${sent.length}` });
          },
        },
        clock: systemClock,
        random: () => 0.5,
        observe: () => undefined,
      },
      { owner: 'relay', attemptsMax: 1, heldReadEveryMs: 200 },
    );
    const running = relay.run();
    try {
      const statusOf = async (eventId: EventId | undefined) =>
        (await outboxOf(client, outbox).findOne({ _id: eventId! }))?.status;
      const allAre = async (status: string, ...ids: readonly (EventId | undefined)[]): Promise<boolean> =>
        (await Promise.all(ids.map(statusOf))).every((one) => one === status);
      await eventually(() => allAre('DEAD', retried, skipped), 20_000, 'both are DEAD');
      expect(sent).toEqual([]);
      const actions = createOutboxActions(client);
      refused.delete(retried);
      await actions.retry({ namespace: outbox, eventId: retried!, ...ada });
      await actions.skip({ namespace: outbox, eventId: skipped!, ...ada });
      await eventually(() => allAre('PUBLISHED', afterRetried, afterSkipped), 20_000, 'what waited is published');
      const of = (...ids: unknown[]): readonly string[] =>
        sent.filter((line) => ids.some((id) => line.startsWith(String(id))));
      expect(of(retried, afterRetried)).toEqual([`${retried!} original`, `${afterRetried!} original`]);
      expect(of(skipped, afterSkipped)).toEqual([`${skipped!} tombstone`, `${afterSkipped!} original`]);
      const row = await outboxOf(client, outbox).findOne({ _id: skipped! });
      expect(row).toMatchObject({ status: 'PUBLISHED', publication: { form: 'tombstone' } });
    } finally {
      await relay.stop();
      await running;
    }
  });

  async function emptyOutbox(): Promise<Namespace> {
    const outbox = namespace(`${shared.database('orders')}.outbox`);
    await ensureOutboxCollections(shared.client(), databaseOf(outbox));
    return outbox;
  }

  async function deadEvent(): Promise<{ outbox: Namespace; eventId: EventId }> {
    const outbox = await emptyOutbox();
    const [eventId] = await commitSamples(shared.client(), [{ namespace: outbox, aggregateId: 'a' }]);
    const { marker } = createRelayStores({ client: shared.client(), database: 'unused', namespaces: [outbox] });
    const target = { namespace: outbox, eventId: eventId!, relay: 'relay', epoch: epoch(1) };
    const failure = { revision: 1, status: 'DEAD', retryCount: 1, retryInMs: 0, error: 'refused' } as const;
    await marker.mark([{ ...target, kind: 'failed', ...failure }]);
    return { outbox, eventId: eventId! };
  }
});
