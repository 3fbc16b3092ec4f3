import { createRetention, type AuditReport } from '@nightporter/ledger';
import { connectMongo } from '@nightporter/mongo';
import { namespace } from '@nightporter/protocol';
import type { MongoClient } from 'mongodb';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { auditedLedger, type AuditedLedger } from '../../../scripts/src/bench/audited-ledger.js';
import { buildPrograms } from '../../e2e/programs.js';
import { showFigures } from '../../support/figures.js';
import { sharedStack, uniqueName } from '../../support/stack.js';
import { createOperator, type Operator } from '../support/operator.js';
import { sized } from '../support/size.js';

const SIZES = sized({ full: [20_000, 50_000, 200_000], small: [500, 1_500] });
const AGGREGATES = sized({ full: 2_000, small: 100 });
const DELETED = sized({ full: 10_000, small: 200 });
const FRESH = sized({ full: 1_000, small: 100 });
/** Of JavaScript's own memory. The rows of the largest size alone are several times as much. */
const HEAP_MIB = 96;
/** Of the whole process, between the smallest and the largest size. */
const GROWTH_MAX_MIB = 64;
/** Tells on standard error what the process held at most. */
const TELLS_MEMORY = `process.on('exit', () => process.stderr.write('peak ' + process.resourceUsage().maxRSS + ' KiB'))`;
const NODE_FLAGS = [
  `--max-old-space-size=${HEAP_MIB}`,
  '--import',
  `data:text/javascript,${encodeURIComponent(TELLS_MEMORY)}`,
];
const AUDIT = ['audit', '--grace-seconds', '0', '--lag-seconds', '0'];

const producer = uniqueName('audited');
const groups = ['a', 'b'].map((name) => ({
  group: uniqueName(`readers-${name}`),
  database: uniqueName(`reads-${name}`),
}));
let client: MongoClient;
let ledger: AuditedLedger;
let operator: Operator;

beforeAll(async () => {
  buildPrograms('services/cli');
  const { mongodbUri } = sharedStack();
  client = await connectMongo({ uri: mongodbUri, socketMs: 600_000 });
  ledger = await auditedLedger({ client, producer, topic: 'audited-events', groups, aggregates: AGGREGATES });
  const homes = groups.map(({ database, group }) => `${group}=${database}`).join(',');
  const where = ['--mongodb-uri', mongodbUri, '--producers', producer, '--group-db', homes];
  operator = createOperator({ client, where });
});
afterAll(() => client.close());

async function audited(args: readonly string[]): Promise<{ readonly report: AuditReport; readonly peakMiB: number }> {
  const { exit, json, stderr } = await operator.runProcess([...AUDIT, ...args], NODE_FLAGS);
  const peakKiB = Number(/peak (\d+) KiB/.exec(stderr)?.[1]);
  const report = json as AuditReport;
  expect([exit, report.kind, report.differences, report.notes]).toEqual([0, 'completed', [], []]);
  return { report, peakMiB: Math.round(peakKiB / 1_024) };
}

const retire = (destination: Parameters<typeof createRetention>[0]['destination']) =>
  createRetention({
    client,
    namespace: namespace(`${producer}.outbox`),
    destination,
    afterMs: 0,
    marginMs: 0,
    pauseMs: 0,
  }).run();

it('an audit holds no more memory for ten times the events, whether they are in the outbox, archived or deleted', async (context) => {
  await ledger.write(DELETED);
  await retire({ kind: 'delete' });
  let written = DELETED;
  const peaks: number[] = [];
  for (const [index, size] of SIZES.entries()) {
    await ledger.write(size - written);
    written = size;
    const { peakMiB, report } = await audited(['--full']);
    expect(report.producers).toMatchObject([{ committed: size, present: size - DELETED, deleted: DELETED }]);
    expect(report.groups.map(({ settled }) => settled)).toEqual([size - DELETED, size - DELETED]);
    peaks.push(peakMiB);
    showFigures(context, {
      [`events ${index + 1}`]: size,
      [`full s ${index + 1}`]: report.elapsedMs / 1_000,
      [`events per s ${index + 1}`]: Math.round((size * 1_000) / report.elapsedMs),
      [`peak MiB ${index + 1}`]: peakMiB,
    });
    // What was written first is archived before the next audit.
    if (index === 0) await retire({ kind: 'collections', bucket: 'day' });
  }
  await ledger.write(FRESH);
  const { report } = await audited([]);
  showFigures(context, {
    deleted: DELETED,
    archived: SIZES[0]! - DELETED,
    'growth MiB': peaks.at(-1)! - peaks[0]!,
    'new events': FRESH,
    'audit of what is new s': report.elapsedMs / 1_000,
    'heap limit MiB': HEAP_MIB,
  });
  expect(report.groups.map(({ publishedInThisRun }) => publishedInThisRun)).toEqual([FRESH, FRESH]);
  expect(peaks.at(-1)! - peaks[0]!).toBeLessThan(GROWTH_MAX_MIB);
});
