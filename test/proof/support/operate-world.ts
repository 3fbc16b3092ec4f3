import type { AuditReport, Timeline } from '@nightporter/ledger';
import { expect } from 'vitest';
import { until, type Program } from '../../e2e/programs.js';
import { sharedStack } from '../../support/stack.js';
import type { Carriage } from './careless-publisher.js';
import { openJournalGroup, untilSettled, type JournalGroup } from './journal-group.js';
import { openJournalWorld, type Emission, type JournalWorld } from './journal-world.js';
import { createOperator, type Operator } from './operator.js';
import { sized } from './size.js';

type Difference = AuditReport['differences'][number];
type Finding = {
  readonly severity: string;
  readonly check: string;
  readonly text: string;
  readonly mend: string | null;
};

/** A pipeline that runs, and an operator who looks at it. */
export interface OperateWorld extends JournalWorld {
  readonly group: JournalGroup;
  readonly operator: Operator;
  /** How events of an aggregate are carried to the broker; without an entry once. */
  readonly carriage: Map<string, Carriage>;
  /** So that every event that is committed and can be settled is. */
  untilRest(): Promise<void>;
  startWorker(): Promise<void>;
  stopWorker(): Promise<void>;
  /** What audit and doctor say now, with the mending of each. */
  look(): Promise<Look>;
  timeline(eventId: string): Promise<{ readonly exit: number; readonly found: Timeline }>;
}

export interface Look {
  readonly audit: readonly Difference[];
  /** Without notes. */
  readonly doctor: readonly Finding[];
}

export const LIMIT_MS = sized({ full: 300_000, small: 60_000 });
/** Nothing is too young. */
const AUDIT = ['audit', '--full', '--grace-seconds', '0', '--lag-seconds', '0'];

export async function openOperateWorld(): Promise<OperateWorld> {
  const carriage = new Map<string, Carriage>();
  const world = await openJournalWorld({
    carriageOf: ({ aggregateId }) => carriage.get(aggregateId) ?? 'once',
    relay: {
      attemptsMax: 2,
      failedDelayMs: 100,
      failedDelayMaxMs: 200,
      heldReadEveryMs: 500,
      sweepEveryMs: 2_000,
      topicDelayMaxMs: 2_000,
    },
  });
  const settings = { GAP_WAIT_MS: '1000', LEDGER_SWEEP_EVERY_MS: '1000', LEDGER_LAG_MS: '500', ATTEMPTS_MAX: '2' };
  const group = await openJournalGroup(world, { settings });
  const { rocketmqEndpoints } = sharedStack();
  const { client, mongodbUri, outbox, producer, relayDatabase } = world;
  const where = ['--mongodb-uri', mongodbUri, '--producers', producer, '--relay-db', relayDatabase];
  const operator = createOperator({ client, where: [...where, '--group-db', `${group.group}=${group.database}`] });
  let worker: Program | null = null;
  return {
    ...world,
    group,
    operator,
    carriage,
    async startWorker() {
      worker ??= await group.startWorker();
    },
    async stopWorker() {
      worker?.signal('SIGTERM');
      await worker?.ended;
      worker = null;
    },
    async untilRest() {
      const isPublished = async () => (await outbox.countDocuments({ status: { $ne: 'PUBLISHED' } })) === 0;
      await until('all is published', isPublished, LIMIT_MS);
      await untilSettled(group, await outbox.countDocuments(), LIMIT_MS);
    },
    async look() {
      const audited = await operator.run(AUDIT);
      const report = audited.json as AuditReport;
      const examined = await operator.run(['doctor', '--rocketmq-endpoints', rocketmqEndpoints]);
      const serious = (examined.json as readonly Finding[]).filter(({ severity }) => severity !== 'note');
      // What a script goes by says the same as what a person reads.
      expect([audited.exit, examined.exit]).toEqual([report.differencesTotal > 0 ? 1 : 0, serious.length > 0 ? 1 : 0]);
      expect([report.kind, report.notes]).toEqual(['completed', []]);
      return { audit: report.differences, doctor: serious };
    },
    async timeline(eventId) {
      const { exit, json } = await operator.run(['timeline', eventId]);
      return { exit, found: json as Timeline };
    },
  };
}

/** Real traffic: so many events of each aggregate, by transactions of several aggregates. */
export async function traffic(world: OperateWorld, prefix: string): Promise<number> {
  const aggregates = Array.from({ length: 6 }, (_, index): Emission => ({ aggregateId: `${prefix}-${index}` }));
  const rounds = sized({ full: 20, small: 3 });
  for (let round = 0; round < rounds; round += 1) await world.commit(aggregates);
  return rounds * aggregates.length;
}
