import {
  createGroupStores,
  ensureConsumerCollections,
  type ParkedDocument,
  type PositionDocument,
} from '@nightporter/mongo';
import { aggregateIdentity, aggregateKey, type AggregateKey } from '@nightporter/protocol';
import { MongoClient, type Document } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { sharedStack } from '../support/stack.js';

const shared = sharedDatabase();
const GROUP = 'group';
const PAGE = 5;
const AGGREGATES = 24;
const ROWS_EACH = 8;
const ROWS_OF_THE_LONGEST = 150;
const ROWS = (AGGREGATES - 1) * ROWS_EACH + ROWS_OF_THE_LONGEST;

interface Statement {
  readonly command: Document;
  returned: number;
}

/** The figures are the same on every server: what a statement lets in, and what it hands out. */
describe('what waits in a group, in many aggregates and one long one', () => {
  let client: MongoClient;
  let database: string;
  let statements: Map<number, Statement>;
  beforeAll(async () => {
    database = shared.database('consumer');
    await ensureConsumerCollections(shared.client(), database);
    await park();
    client = new MongoClient(sharedStack().mongodbUri, { monitorCommands: true });
    client.on('commandStarted', ({ command, requestId }) => {
      if (collectionOf(command) === 'parked') statements.set(requestId, { command, returned: 0 });
    });
    client.on('commandSucceeded', ({ reply, requestId }) => {
      const { cursor } = reply as { cursor?: { firstBatch?: unknown[]; nextBatch?: unknown[] } };
      const statement = statements.get(requestId);
      if (statement !== undefined) statement.returned = (cursor?.firstBatch ?? cursor?.nextBatch ?? []).length;
    });
  });
  afterAll(() => client.close());

  it('is read once at most in a round that looks for gaps, however many pages that has', async () => {
    const { gaps } = createGroupStores({ client, database, group: GROUP });
    statements = new Map();
    const found: string[] = [];
    let pages = 0;
    for (let after: AggregateKey | null = null; pages === 0 || after !== null; pages += 1) {
      const page: Awaited<ReturnType<typeof gaps.find>> = await gaps.find({ olderThanMs: 1_000, after, limit: PAGE });
      found.push(...page.gaps.map(({ aggregate, from, to }) => `${idOf(aggregate)} ${from}-${to}`));
      after = page.after;
      expect(pages).toBeLessThan(3 * AGGREGATES);
    }
    expect(found).toEqual(['a20 1-1']);
    expect(pages).toBeGreaterThanOrEqual(AGGREGATES / PAGE);
    expect(statements.size).toBeLessThanOrEqual(2 * pages);
    // Of the long one no more than a page takes in.
    expect(await letIn()).toBeLessThanOrEqual((AGGREGATES - 1 + PAGE) * ROWS_EACH);
    expect(returned()).toBeLessThanOrEqual(AGGREGATES + PAGE);
    await expectIndex();
  });

  it('is brought by one row for each aggregate where something forgotten is looked for', async () => {
    const { parked } = createGroupStores({ client, database, group: GROUP });
    statements = new Map();
    expect(await parked.wake({ olderThanMs: 1_000, limit: 10 })).toBe(1);
    expect(await shared.client().db(database).collection('parked').countDocuments({ state: 'retry' })).toBe(1);
    expect(returned()).toBeLessThanOrEqual(AGGREGATES + 1);
    expect(await letIn()).toBeLessThanOrEqual(ROWS);
    await expectIndex();
  });

  function reads(): readonly Statement[] {
    return [...statements.values()].filter(({ command }) => 'find' in command || 'aggregate' in command);
  }

  function returned(): number {
    return [...statements.values()].reduce((sum, statement) => sum + statement.returned, 0);
  }

  /** Rows that the statements took in, in all: of a pipeline, those that come up to where it groups them. */
  async function letIn(): Promise<number> {
    let sum = 0;
    for (const { command, returned: handedOut } of reads()) {
      const stages = (command['pipeline'] ?? []) as Document[];
      const grouped = stages.findIndex((stage) => '$group' in stage);
      const prefix = stages.slice(0, grouped === -1 ? stages.length : grouped);
      const counted = [...prefix, { $count: 'rows' }];
      const [found] = await shared
        .client()
        .db(database)
        .collection('parked')
        .aggregate<{ rows: number }>(counted)
        .toArray();
      sum += 'find' in command ? handedOut : (found?.rows ?? 0);
    }
    return sum;
  }

  async function expectIndex(): Promise<void> {
    for (const { command } of reads()) {
      const stages = (command['pipeline'] ?? []) as Document[];
      const filter = (command['filter'] ?? stages[0]?.['$match']) as Document;
      const sort = (command['sort'] ?? stages[1]?.['$sort']) as Document;
      const explain = { find: 'parked', filter, sort };
      const plan = await shared.client().db(database).command({ explain, verbosity: 'queryPlanner' });
      expect(JSON.stringify(plan['queryPlanner']), JSON.stringify(explain)).toContain('"waiting"');
    }
  }

  /** All wait behind a dead one but for two: of `a17` the next in line was forgotten, of `a20` the first is missing. The last is the long one. */
  async function park(): Promise<void> {
    const rows: ParkedDocument[] = [];
    const positions: PositionDocument[] = [];
    for (let index = 0; index < AGGREGATES; index += 1) {
      const aggregate = keyOf(index);
      const [version, state] = index === 17 ? [1, 'open' as const] : [0, index === 20 ? ('open' as const) : 'blocked'];
      const standing = { group: GROUP, aggregate, version, startVersion: 0, revision: 1 };
      positions.push({ ...standing, _id: `${GROUP}|${aggregate}`, state: state as PositionDocument['state'] });
      if (state === 'blocked') rows.push(parkedRow(aggregate, 1, 'dead'));
      const count = index === AGGREGATES - 1 ? ROWS_OF_THE_LONGEST : ROWS_EACH;
      for (let row = 0; row < count; row += 1) rows.push(parkedRow(aggregate, 2 + row, 'behind'));
    }
    const own = shared.client().db(database);
    await own.collection<ParkedDocument>('parked').insertMany(rows);
    await own.collection<PositionDocument>('positions').insertMany(positions);
  }
});

function collectionOf(command: Document): unknown {
  return command['find'] ?? command['aggregate'] ?? command['collection'];
}

function keyOf(index: number): AggregateKey {
  const aggregateId = `a${String(index).padStart(2, '0')}`;
  return aggregateKey({ source: 'orders', aggregateType: 'order', aggregateId });
}

function idOf(aggregate: AggregateKey): string {
  return aggregateIdentity(aggregate).aggregateId;
}

function parkedRow(aggregate: AggregateKey, version: number, state: ParkedDocument['state']): ParkedDocument {
  const place = { _id: `${GROUP}|${aggregate}#${version}`, group: GROUP, aggregate, version, sequenced: true } as const;
  const dates = { nextRetryAt: null, firstFailedAt: null, lastFailedAt: null, parkedAt: new Date(0) };
  return { ...place, ...dates, state, attempts: 0, failure: null, revision: 1 } as unknown as ParkedDocument;
}
