import { status } from '@nightporter/ledger';
import { createGroupStats, createRelayStores } from '@nightporter/mongo';
import { beforeEach, describe, expect, it } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { operationsFixture, type OperationsFixture } from './operations.support.js';

const shared = sharedDatabase();
let fixture: OperationsFixture;

beforeEach(async () => {
  fixture = await operationsFixture(shared);
});

/** A dead letter with more behind it than is counted, and a retry. */
async function parkMany(): Promise<void> {
  const [dead, ...behind] = await fixture.commit('1', 4);
  const [retry] = await fixture.commit('2', 1);
  await fixture.publish([dead!, ...behind, retry!]);
  await fixture.park(dead!, 'dead');
  for (const id of behind) await fixture.park(id, 'behind');
  await fixture.park(retry!, 'retry');
}

describe('figures that are capped', () => {
  it('of a group tell its dead letters also where more than is counted waits behind them', async () => {
    await parkMany();
    const { client, consumer: database, group, producer } = fixture;
    const figures = await createGroupStats({ client, database, group, producers: [producer], countedMax: 2 }).read();
    expect(figures).toMatchObject({
      waiting: { gap: { rows: 0 }, behind: { rows: 2 }, retry: { rows: 1 }, dead: { rows: 1 }, aside: { rows: 0 } },
      isCapped: true,
    });
    expect(figures.waiting.dead.oldestAgeMs).toBeGreaterThanOrEqual(figures.waiting.retry.oldestAgeMs!);
    const whole = await createGroupStats({ client, database, group, producers: [producer] }).read();
    expect(whole).toMatchObject({ waiting: { behind: { rows: 3 }, dead: { rows: 1 } }, isCapped: false });
  });

  it('of the status do so too', async () => {
    await parkMany();
    const { groups } = await status(fixture.deployment, fixture.client, { parkedMax: 2 });
    expect(groups).toMatchObject([{ parked: { gap: 0, behind: 2, retry: 1, dead: 1, setAside: 0 } }]);
  });

  it('of an outbox tell the rows that are DEAD also where more than is counted is PENDING', async () => {
    const [dead] = await fixture.commit('1', 3);
    await fixture.kill(dead!);
    const { client, outbox, relayDatabase: database } = fixture;
    const { stats } = createRelayStores({ client, database, namespaces: [outbox], countedMax: 1 });
    expect(await stats.read()).toMatchObject({
      unsettled: { PENDING: { rows: 1 }, PROCESSING: { rows: 0 }, FAILED: { rows: 0 }, DEAD: { rows: 1 } },
      isCapped: true,
    });
  });
});
