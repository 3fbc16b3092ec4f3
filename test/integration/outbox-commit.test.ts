import { createOutbox, type Outbox } from '@nightporter/outbox';
import type { MongoClient } from 'mongodb';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { sharedStack } from '../support/stack.js';
import { startCommitProxy, type CommitProxy } from './commit-proxy.js';
import { catalogue, codeOf, connect, note, outboxFixture, type OutboxFixture } from './outbox-fixture.js';

let client: MongoClient;
let fixture: OutboxFixture;
let proxy: CommitProxy;
let proxied: MongoClient;
/** The same outbox, behind the proxy. */
let outbox: Outbox;
/** Runs of the work so far. */
let runs: number;

beforeAll(async () => {
  client = await connect(sharedStack().mongodbUri);
});

afterAll(async () => {
  await client.close();
});

beforeEach(async () => {
  fixture = await outboxFixture(client);
  const { host, port } = client.options.hosts[0] ?? {};
  proxy = await startCommitProxy({ host: host ?? '127.0.0.1', port: port ?? 27017 });
  proxied = await connect(proxy.uri);
  outbox = createOutbox({ client: proxied, database: fixture.database, source: 'tests', catalogue });
  runs = 0;
});

afterEach(async () => {
  await proxied.close();
  await proxy.close();
});

/** Writes a domain document that no second run could write again, and an event. */
async function write(id: string, retryMs?: number): Promise<string> {
  return outbox.transaction(
    async ({ session, emit }) => {
      runs += 1;
      await proxied.db(fixture.database).collection<{ _id: string }>('notes').insertOne({ _id: id }, { session });
      await emit(note(id));
      return `run ${runs}`;
    },
    retryMs === undefined ? {} : { retryMs },
  );
}

describe('a commit', () => {
  it('without a fault passes the proxy once', async () => {
    expect(await write('n')).toBe('run 1');
    expect(proxy.commits()).toBe(1);
    expect(await fixture.counts()).toEqual([1, 1, 1]);
  });

  it('whose answer is lost is asked again, and committed once', async () => {
    proxy.strike('lose-answer');
    expect(await write('n')).toBe('run 1');
    expect(proxy.commits()).toBe(2);
    expect(await fixture.counts()).toEqual([1, 1, 1]);
  });

  it('whose every answer is lost is found in the outbox, with the result of the run that committed', async () => {
    proxy.strike(...Array.from({ length: 50 }, () => 'lose-answer' as const));
    expect(await write('n')).toBe('run 1');
    expect(runs).toBe(1);
    expect(await fixture.counts()).toEqual([1, 1, 1]);
  });

  it('that does not arrive is sent again, and committed once', async () => {
    proxy.strike('lose-request');
    await write('n');
    expect(await fixture.counts()).toEqual([1, 1, 1]);
    expect(await fixture.versionsOf('n')).toEqual([1]);
  });

  it.each([1, 20, 150])('that lands %i ms late, beside its own repetition, is committed once', async (delayMs) => {
    proxy.strike({ delayMs });
    await write('n');
    await write('m');
    await new Promise((resolve) => setTimeout(resolve, delayMs + 50));
    expect(await fixture.counts()).toEqual([2, 2, 2]);
    expect([await fixture.versionsOf('n'), await fixture.versionsOf('m')]).toEqual([[1], [1]]);
  });

  it('whose answer is lost is never doubled, whatever faults meet the rest, and whoever competes', async () => {
    const faults = [
      'lose-answer',
      'lose-request',
      { delayMs: 5 },
      'lose-answer',
      { delayMs: 40 },
      'lose-request',
    ] as const;
    const commands = Array.from({ length: 8 }, (_, n) => n);
    const outcomes = await Promise.all(
      commands.map((n) => {
        const fault = faults[n % faults.length];
        if (fault !== undefined) proxy.strike(fault);
        return codeOf(
          outbox.transaction(async ({ session, emit }) => {
            const notes = proxied.db(fixture.database).collection<{ _id: string }>('notes');
            await notes.insertOne({ _id: String(n) }, { session });
            await emit(note('shared'));
          }),
        );
      }),
    );
    expect(outcomes).toEqual(commands.map(() => null));
    expect(await fixture.counts()).toEqual([8, 8, 1]);
    expect(await fixture.versionsOf('shared')).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  it('over which the database is lost for good is called unknown, with the ids to look for', async () => {
    proxy.strike('lose-database');
    const error: unknown = await write('n', 200).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'NP_STORE_UNAVAILABLE' });
    const stored = await fixture.rows.findOne({ aggregateId: 'n' });
    expect(String(error)).toMatch(new RegExp(`is unknown.*has the events ${String(stored?._id)}\\.`));
  });

  it('that cannot even begin fails when the time is over, and says that nothing is committed', async () => {
    await proxy.close();
    const error: unknown = await write('n', 200).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'NP_STORE_UNAVAILABLE' });
    expect(String(error)).toMatch(/nothing is committed/);
  });
});
