import { startMongo, type MongoServer } from '@nightporter/embedded';
import { isNightporterError } from '@nightporter/protocol';
import type { MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect, note, outboxFixture, type OutboxFixture } from '../integration/outbox-fixture.js';

const WRITERS = 6;
const AGGREGATES = 3;
const KILLS = 3;
/** Between two kills. */
const COMMITS_BETWEEN = 25;

type Outcome = 'committed' | 'unknown' | 'rolled back';

let server: MongoServer;
let client: MongoClient;

beforeAll(async () => {
  server = await startMongo();
  client = await connect(server.uri);
});

afterAll(async () => {
  await client.close();
  await server.stop();
});

describe('an outbox whose database is killed and started again', () => {
  it('has of every transaction all or nothing, once, and just what its caller was told', async ({ skip }) => {
    skip(!server.owned, 'the database is not ours to kill');
    const fixture = await outboxFixture(client);
    const told = new Map<string, Outcome>();
    const load = startLoad(fixture, told);
    for (let kill = 1; kill <= KILLS; kill += 1) {
      await expect.poll(() => load.committed(), { timeout: 60_000 }).toBeGreaterThanOrEqual(kill * COMMITS_BETWEEN);
      await server.kill();
      await server.restart();
    }
    await expect
      .poll(() => load.committed(), { timeout: 60_000 })
      .toBeGreaterThanOrEqual((KILLS + 1) * COMMITS_BETWEEN);
    await load.stop();

    const documents = new Set((await fixture.notes.find().toArray()).map(({ _id }) => _id));
    const events = (await fixture.rows.find().toArray()).map(({ payload }) => payload as string);
    expect(events.toSorted()).toEqual([...documents].toSorted());
    for (const [id, outcome] of told) {
      if (outcome !== 'unknown')
        expect(`${id} ${String(documents.has(id))}`).toBe(`${id} ${String(outcome === 'committed')}`);
    }
    for (let aggregate = 0; aggregate < AGGREGATES; aggregate += 1) {
      const versions = await fixture.versionsOf(`a${aggregate}`);
      expect(versions).toEqual(versions.map((_version, index) => index + 1));
      expect(await fixture.headOf(`a${aggregate}`)).toBe(versions.length);
    }
  });
});

/** Writers that each write one document and its event, over and over, and note down what they were told. */
function startLoad(
  { outbox, notes }: OutboxFixture,
  told: Map<string, Outcome>,
): { readonly committed: () => number; readonly stop: () => Promise<void> } {
  let running = true;
  const writer = async (name: number): Promise<void> => {
    for (let n = 0; running; n += 1) {
      const id = `${name}-${n}`;
      const write = outbox.transaction(async ({ session, emit }) => {
        await notes.insertOne({ _id: id, text: 'x' }, { session });
        await emit(note(`a${n % AGGREGATES}`, { payload: id }));
      });
      told.set(id, await write.then((): Outcome => 'committed', outcomeOf));
    }
  };
  const writers = Array.from({ length: WRITERS }, (_, name) => writer(name));
  return {
    committed: () => [...told.values()].filter((outcome) => outcome === 'committed').length,
    stop: async () => {
      running = false;
      await Promise.all(writers);
    },
  };
}

function outcomeOf(error: unknown): Outcome {
  if (!isNightporterError(error)) throw error;
  return error.message.includes('is unknown') ? 'unknown' : 'rolled back';
}
