import {
  OUTBOX_COLLECTIONS,
  assertOperator,
  ensureArchiveCatalogue,
  guarded,
  recordAction,
  runAction,
  type ArchiveFiles,
} from '@nightporter/mongo';
import { NightporterError } from '@nightporter/protocol';
import type { ObjectId } from 'mongodb';
import { setTimeout as delay } from 'node:timers/promises';
import { moveBatch } from './batch.js';
import type { Retention, RetentionOptions, RetentionRequest, RetentionResult } from './contract.js';
import { dropExpiredBuckets, type Expired } from './expiry.js';
import { fileBatch } from './file-batch.js';
import { dropExpiredFiles } from './file-expiry.js';
import { removeLeftFiles } from './left-files.js';
import { highestLimitMs, type Rule } from './policy.js';
import { readStandings } from './registry.js';
import { heldRows, scan } from './scan.js';
import { retentionWorld, type RetentionWorld } from './world.js';

/** Throws NP_CONFIG_INVALID for an option that is out of range. */
export function createRetention(options: RetentionOptions): Retention {
  const world = retentionWorld(options);
  return {
    run: (request = {}) => guarded(`retention of ${world.namespace}`, () => run(world, request)),
  };
}

async function run(world: RetentionWorld, request: RetentionRequest): Promise<RetentionResult> {
  const { forced = false } = request;
  assertSigned(request);
  const record = await recordStart(world, request);
  const { afterMs, marginMs } = world;
  const rule: Rule = { nowMs: (await world.clock.read()).getTime(), afterMs, marginMs, forced };
  const moved = await moveAll(world, rule, request);
  const { dropped, held: heldArchives } = await dropExpired(world, rule, request.signal);
  const isInterrupted = request.signal?.aborted === true;
  const held = isInterrupted ? [] : await heldRows(world, await readStandings(world.groups), rule);
  const kind = isInterrupted ? 'interrupted' : 'completed';
  const result: RetentionResult = { kind, ...moved, dropped, held, heldArchives };
  if (record !== null) await recordEnd(world, record, result);
  return result;
}

type Totals = Pick<RetentionResult, 'rows' | 'bytes' | 'batches'>;

async function moveAll(world: RetentionWorld, rule: Rule, { progress, signal }: RetentionRequest): Promise<Totals> {
  const { destination } = world;
  if (destination.kind === 'files') await prepareFiles(world, destination.files);
  const standings = await readStandings(world.groups);
  let totals: Totals = { rows: 0, bytes: 0, batches: 0 };
  for await (const { rows: batch } of scan(world, { beforeMs: highestLimitMs(standings, rule), rule, standings })) {
    if (signal?.aborted === true) break;
    const moved = await (destination.kind === 'files'
      ? fileBatch(world, { batch, files: destination.files, rule, signal })
      : moveBatch(world, { batch, rule, signal }));
    if (moved === null) break;
    const { rows, bytes } = moved;
    totals = { rows: totals.rows + rows, bytes: totals.bytes + bytes, batches: totals.batches + 1 };
    await progress?.({ ...totals, publishedMs: batch.at(-1)?.publishedAt.getTime() ?? 0 });
    await rest(world.pauseMs, signal);
  }
  return totals;
}

async function prepareFiles(world: RetentionWorld, files: ArchiveFiles): Promise<void> {
  await ensureArchiveCatalogue(world.client, world.database.databaseName);
  await removeLeftFiles(world, files);
}

async function dropExpired(world: RetentionWorld, rule: Rule, signal: AbortSignal | undefined): Promise<Expired> {
  const buckets = await dropExpiredBuckets(world, rule, signal);
  const { destination } = world;
  if (destination.kind !== 'files') return buckets;
  const files = await dropExpiredFiles(world, { files: destination.files, rule, signal });
  return { dropped: [...buckets.dropped, ...files.dropped], held: [...buckets.held, ...files.held] };
}

async function rest(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  if (delayMs === 0) return;
  try {
    await delay(delayMs, undefined, { ...(signal && { signal }) });
  } catch (error) {
    if (signal?.aborted !== true) throw error;
  }
}

function assertSigned({ forced = false, operator }: RetentionRequest): void {
  if (operator !== undefined) assertOperator(operator);
  else if (forced) {
    throw new NightporterError('NP_ACTION_INVALID', 'A forced retention needs an operator: who forces it, and why.');
  }
}

/** Before anything is moved, so that nothing an operator began can be missing from the records. */
async function recordStart(
  world: RetentionWorld,
  { forced = false, operator }: RetentionRequest,
): Promise<ObjectId | null> {
  if (operator === undefined) return null;
  const { afterMs, archiveMs, client, database, destination, namespace } = world;
  const details = { destination: destination.kind, afterMs, archiveMs };
  const action = forced ? 'forced-retention' : 'retention';
  return runAction(client, `recording the retention of ${namespace}`, (session) =>
    recordAction(database, session, { action, target: namespace, details, ...operator }),
  );
}

async function recordEnd(world: RetentionWorld, record: ObjectId, result: RetentionResult): Promise<void> {
  const { batches, bytes, dropped, kind, rows } = result;
  const outcome = { kind, rows, bytes, batches, archivesDropped: dropped.length };
  await world.database.collection(OUTBOX_COLLECTIONS.actions).updateOne({ _id: record }, { $set: { outcome } });
}
