import { createOutbox, type Outbox } from '@nightporter/outbox';
import { MongoError, type MongoClient } from 'mongodb';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { sharedStack } from '../support/stack.js';
import { startCommandProxy, type CommandFault, type CommandProxy } from './command-proxy.js';
import { catalogue, codeOf, connect, note, outboxFixture, type OutboxFixture } from './outbox-fixture.js';

let client: MongoClient;
let fixture: OutboxFixture;
let proxy: CommandProxy;
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
  proxy = await startCommandProxy({ host: host ?? '127.0.0.1', port: port ?? 27017 });
  proxied = await connect(proxy.uri);
  outbox = createOutbox({ client: proxied, database: fixture.database, source: 'tests', catalogue });
  runs = 0;
});

afterEach(async () => {
  await proxied.close();
  await proxy.close();
});

function strikeCommit(...faults: readonly CommandFault[]): void {
  proxy.strike('commitTransaction', ...faults);
}

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
    expect(proxy.count('commitTransaction')).toBe(0);
    expect(await write('n')).toBe('run 1');
    expect(proxy.count('commitTransaction')).toBe(1);
    expect(await fixture.counts()).toEqual([1, 1, 1]);
  });

  it('whose answer is lost is asked again, and committed once', async () => {
    strikeCommit('lose-answer');
    expect(await write('n')).toBe('run 1');
    expect(proxy.count('commitTransaction')).toBe(2);
    expect(await fixture.counts()).toEqual([1, 1, 1]);
  });

  it('whose every answer is lost is found in the outbox, with the result of the run that committed', async () => {
    strikeCommit(...Array.from({ length: 50 }, () => 'lose-answer' as const));
    expect(await write('n')).toBe('run 1');
    expect(runs).toBe(1);
    expect(await fixture.counts()).toEqual([1, 1, 1]);
  });

  it('that does not arrive is sent again, and committed once', async () => {
    strikeCommit('lose-request');
    await write('n');
    expect(await fixture.counts()).toEqual([1, 1, 1]);
    expect(await fixture.versionsOf('n')).toEqual([1]);
  });

  it.each([1, 20, 150])('that lands %i ms late, beside its own repetition, is committed once', async (delayMs) => {
    strikeCommit({ delayMs });
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
        if (fault !== undefined) strikeCommit(fault);
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
    strikeCommit('lose-database');
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

describe('an event on a session of the caller', () => {
  it.each(['lose-request', 'lose-answer'] as const)(
    'leaves no hole where the insert met %s, the error was swallowed, and the caller commits',
    async (fault) => {
      await proxied.withSession(async (session) => {
        session.startTransaction();
        proxy.strike('insert', fault);
        const emitted = await codeOf(outbox.emit(session, note('n')));
        expect(emitted).toBeInstanceOf(MongoError);
        expect((emitted as MongoError).hasErrorLabel('TransientTransactionError')).toBe(true);
        await expect(session.commitTransaction()).rejects.toThrow();
      });
      expect(await fixture.counts()).toEqual([0, 0, 0]);
    },
  );

  it('lets nothing else through on its own once the database has failed it', async () => {
    await proxied.withSession(async (session) => {
      session.startTransaction();
      proxy.strike('insert', 'lose-request');
      await codeOf(outbox.emit(session, note('n')));
      const notes = proxied.db(fixture.database).collection<{ _id: string }>('notes');
      await expect(notes.insertOne({ _id: 'n' }, { session })).rejects.toThrow();
    });
    expect(await fixture.counts()).toEqual([0, 0, 0]);
  });

  it("is written once by the driver's own loop, whatever is lost on the way", async () => {
    for (const [n, command] of ['findAndModify', 'insert', 'commitTransaction'].entries()) {
      proxy.strike(command, n % 2 === 0 ? 'lose-answer' : 'lose-request');
      await proxied.withSession((session) => session.withTransaction(() => outbox.emit(session, note('n'))));
    }
    expect(await fixture.versionsOf('n')).toEqual([1, 2, 3]);
    expect(await fixture.headOf('n')).toBe(3);
  });
});

describe('a run of a transaction', () => {
  it.each(['findAndModify', 'insert'])('that loses the connection at its %s is run again', async (command) => {
    proxy.strike(command, 'lose-answer', 'lose-request');
    expect(await write('n')).toBe('run 3');
    expect(await fixture.counts()).toEqual([1, 1, 1]);
  });
});
