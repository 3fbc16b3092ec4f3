import {
  CONSUMER_COLLECTIONS,
  type InboxDocument,
  type ParkedDocument,
  type PositionDocument,
} from '@nightporter/mongo';
import type { Collection } from 'mongodb';
import { fork } from 'node:child_process';
import { builtFile, Program, until, untilReady } from '../../e2e/programs.js';
import { createGroup, sharedStack, uniqueName } from '../../support/stack.js';
import type { JournalWorld } from './journal-world.js';
import { journalCollections, type JournalEntry } from './programs/journal.js';

/** The project of the programs, for `buildPrograms`. */
export const JOURNAL_PROGRAMS = 'test/proof/support/programs';

/** A consumer group with a database of its own, whose members are processes. */
export interface JournalGroup {
  readonly group: string;
  readonly database: string;
  readonly world: JournalWorld;
  readonly journal: Collection<JournalEntry>;
  readonly inbox: Collection<InboxDocument>;
  readonly positions: Collection<PositionDocument>;
  readonly parked: Collection<ParkedDocument>;
  /** Starts a member; resolves once it is ready. */
  startWorker(settings?: Readonly<Record<string, string>>, execArgv?: readonly string[]): Promise<Program>;
}

export interface GroupOptions {
  /** Settings of every member. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Default true: the broker gives the group whatever is sent from now on. False: the broker decides at the first receive. */
  readonly fromNowOn?: boolean;
}

export async function openJournalGroup(
  world: JournalWorld,
  { settings = {}, fromNowOn = true }: GroupOptions = {},
): Promise<JournalGroup> {
  const group = uniqueName('journal');
  await createGroup({ name: group, ...(fromNowOn ? { topics: [world.topic] } : {}) });
  const db = world.client.db(group);
  return {
    group,
    database: group,
    world,
    journal: journalCollections(db).journal,
    inbox: db.collection<InboxDocument>(CONSUMER_COLLECTIONS.inbox),
    positions: db.collection<PositionDocument>(CONSUMER_COLLECTIONS.positions),
    parked: db.collection<ParkedDocument>(CONSUMER_COLLECTIONS.parked),
    async startWorker(own = {}, execArgv = []) {
      const { rocketmqEndpoints } = sharedStack();
      const env = {
        PATH: process.env['PATH'],
        PORT: '0',
        MONGODB_URI: world.mongodbUri,
        ROCKETMQ_ENDPOINTS: rocketmqEndpoints,
        MONGODB_DB: group,
        PRODUCER_DB: world.producer,
        PRODUCER_TOPIC: world.topic,
        GROUP: group,
        ...settings,
        ...own,
      };
      const file = builtFile(`${JOURNAL_PROGRAMS}/dist/journal-worker.js`);
      const worker = new Program(
        fork(file, [], { env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'], execArgv: [...execArgv] }),
      );
      world.atEnd(() => worker.destroy());
      await untilReady(worker);
      return worker;
    },
  };
}

/** Waits until the group has settled `count` events. */
export async function untilSettled({ inbox }: JournalGroup, count: number, limitMs: number): Promise<void> {
  let seen = 0;
  const isSettled = async (): Promise<boolean> => {
    seen = await inbox.countDocuments();
    return seen >= count;
  };
  await until(`${count} events are settled`, isSettled, limitMs).catch((error: unknown) => {
    throw new Error(`${seen} of ${count} events are settled after ${limitMs} ms`, { cause: error });
  });
}

/** What a member tells of itself. */
export async function statusOf(worker: Program): Promise<Readonly<Record<string, unknown>>> {
  const url = await untilReady(worker);
  const response = await fetch(`${url}/status`, { signal: AbortSignal.timeout(5_000) });
  return (await response.json()) as Record<string, unknown>;
}
