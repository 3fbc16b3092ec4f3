import { connectMongo, createRelayStores, ensureRelayCollections } from '@nightporter/mongo';
import type { LeaseOutcome, LeaseStore } from '@nightporter/relay';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { sharedStack } from '../support/stack.js';
import { startMongoProxy } from './mongo-proxy.js';

const TAKERS = Array.from({ length: 20 }, (_, index) => `owner ${index}`);
const LEASE_MS = 300;
/** Long enough for a slow machine to ask twice within it. */
const LONGER_MS = 2_000;

describe('leases on MongoDB', () => {
  const shared = sharedDatabase();

  async function leaseStore(): Promise<LeaseStore> {
    const client = shared.client();
    const database = shared.database('relay');
    await ensureRelayCollections(client, database);
    return createRelayStores({ client, database, namespaces: [] }).leases;
  }

  function acquireAll(leases: LeaseStore, durationMs: number): Promise<LeaseOutcome[]> {
    return Promise.all(TAKERS.map((owner) => leases.acquire({ shard: 'all', owner, durationMs })));
  }

  it('gives a free lease to one of twenty who ask at once, and tells the others who has it', async () => {
    const leases = await leaseStore();
    const outcomes = await acquireAll(leases, 60_000);
    const holder = TAKERS[outcomes.findIndex((outcome) => outcome.kind === 'held')];
    const refused = outcomes.filter((outcome) => outcome.kind === 'refused');
    expect(refused).toEqual(Array.from({ length: 19 }, () => ({ kind: 'refused', owner: holder })));
  });

  it('gives an expired lease to one of twenty, with the next epoch', async () => {
    const leases = await leaseStore();
    await leases.acquire({ shard: 'all', owner: 'gone', durationMs: LEASE_MS });
    await sleep(LEASE_MS + 50);
    const held = (await acquireAll(leases, 60_000)).filter((outcome) => outcome.kind === 'held');
    expect(held).toEqual([{ kind: 'held', epoch: 2, takenOver: true }]);
  });

  it('counts on the database’s clock, whatever the clock of the process says', async () => {
    const leases = await leaseStore();
    const now = Date.now;
    try {
      Date.now = () => now() + 3_600_000;
      await leases.acquire({ shard: 'all', owner: 'first', durationMs: LONGER_MS });
      const early = await leases.acquire({ shard: 'all', owner: 'second', durationMs: LONGER_MS });
      expect(early).toEqual({ kind: 'refused', owner: 'first' });
      Date.now = () => now() - 3_600_000;
      await sleep(LONGER_MS + 50);
      const late = await leases.acquire({ shard: 'all', owner: 'second', durationMs: LONGER_MS });
      expect(late).toMatchObject({ kind: 'held', epoch: 2 });
    } finally {
      Date.now = now;
    }
  });

  it('rejects with NP_STORE_UNAVAILABLE when the database does not answer', async () => {
    const proxy = await startMongoProxy(sharedStack().mongodbUri);
    const client = await connectMongo({ uri: proxy.uri, serverSelectionMs: 500 });
    const { leases } = createRelayStores({ client, database: shared.database('relay'), namespaces: [] });
    proxy.cut();
    const attempt = leases.acquire({ shard: 'all', owner: 'first', durationMs: LEASE_MS });
    await expect(attempt).rejects.toMatchObject({ code: 'NP_STORE_UNAVAILABLE' });
    await client.close();
    await proxy.close();
  });
});
