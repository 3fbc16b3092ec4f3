import {
  createRelayStores,
  ensureRelayCollections,
  pauseRelay,
  resumeRelay,
  type OperatorActionDocument,
} from '@nightporter/mongo';
import { describe, expect, it } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';

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
