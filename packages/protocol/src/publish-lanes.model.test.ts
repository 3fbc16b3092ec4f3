/**
 * Drives the lanes through random histories over a small outbox: commits, sightings by stream and sweep (late ones too),
 * sends that fail in every way, marks, reads, operators, rows deleted by a stray hand. After every step the promises
 * are checked; in the end, with all trouble over, nothing may be left behind.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { LaneRow } from './lane.js';
import { AGGREGATES, World } from './publish-lanes.world.js';

type Step = { readonly act: string; readonly aggregate: string; readonly delayMs: number };

const step: fc.Arbitrary<Step> = fc.record({
  act: fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom('work', 'work', 'commit') },
    { weight: 2, arbitrary: fc.constantFrom('stream', 'arrive', 'send', 'sent', 'mark', 'read') },
    { weight: 2, arbitrary: fc.constantFrom('sweep', 'pass', 'transient', 'landed unanswered') },
    { weight: 2, arbitrary: fc.constantFrom('topic', 'permanent', 'retry', 'skip', 'delete', 'forget') },
    { weight: 1, arbitrary: fc.constantFrom('foreign FAILED', 'foreign DEAD') },
  ),
  aggregate: fc.constantFrom(...AGGREGATES),
  delayMs: fc.constantFrom(1, 100, 3_000, 10_000),
});

function run(world: World, { act, aggregate, delayMs }: Step, copies: Map<string, LaneRow>): void {
  switch (act) {
    case 'commit':
      world.commit(aggregate);
      for (const id of world.undelivered) {
        const row = world.rows.get(id);
        if (row !== undefined && !copies.has(id)) copies.set(id, world.view(row));
      }
      return;
    case 'work':
      world.lookUpNext(copies);
      world.arrive();
      world.read();
      world.writeMark();
      world.send();
      return;
    case 'stream':
      world.lookUpNext(copies);
      return;
    case 'arrive':
      world.arrive();
      return;
    case 'send':
      world.send();
      return;
    case 'mark':
      world.writeMark();
      return;
    case 'read':
      world.read();
      return;
    case 'sweep':
      world.sweepRead(aggregate);
      return;
    case 'pass':
      world.pass(delayMs);
      return;
    case 'retry':
      world.operate('original');
      return;
    case 'skip':
      world.operate('tombstone');
      return;
    case 'delete':
      world.deleteRow();
      return;
    case 'foreign FAILED':
      world.foreignMark(aggregate, 'FAILED');
      return;
    case 'foreign DEAD':
      world.foreignMark(aggregate, 'DEAD');
      return;
    case 'forget':
      world.lanes.forgetPublished();
      return;
    default:
      world.answer(act as Parameters<World['answer']>[0]);
  }
}

/** All trouble is over: everything is delivered, swept, sent and marked until nothing moves any more. */
function comeToRest(world: World, copies: Map<string, LaneRow>): void {
  for (let round = 0; round < 400; round += 1) {
    world.operate('original');
    while (world.undelivered.length > 0) world.lookUpNext(copies);
    for (const aggregate of AGGREGATES) world.sweepRead(aggregate);
    while (world.onTheirWay.length > 0) world.arrive();
    for (let turn = 0; turn < 4; turn += 1) {
      world.read();
      for (let sends = 0; sends < 4; sends += 1) world.send();
      while (world.sending.size > 0) world.answer('sent');
      while (world.marks.length > 0) world.writeMark();
    }
    world.pass(1_000);
    const isDone = [...world.rows.values()].every((row) => row.status === 'PUBLISHED');
    if (isDone && world.deliveries.every((delivery) => delivery.settled) && world.lanes.rowsInMemory === 0) return;
  }
}

test('whatever happens, order holds, nothing is forgotten, and an unanswered original is never set aside unrecorded', () => {
  const limits = fc.constantFrom([1, 2, 1] as const, [2, 4, 2] as const, [100, 100, 100] as const);
  fc.assert(
    fc.property(
      limits,
      fc.array(step, { minLength: 30, maxLength: 150, size: 'max' }),
      ([windowMax, bufferMax, held], steps) => {
        const world = new World(windowMax, bufferMax, held);
        const copies = new Map<string, LaneRow>();
        for (const next of steps) run(world, next, copies);
        comeToRest(world, copies);
        const left = [...world.rows.values()].filter((row) => row.status !== 'PUBLISHED').map((row) => row.eventId);
        expect(left, 'unpublished at rest').toEqual([]);
        for (const [aggregate, versions] of world.versions) {
          for (let version = 1; version <= versions; version += 1) {
            const id = `${aggregate}/${version}`;
            expect(world.landed.has(id) || world.givenUp.has(id), `${id} never landed`).toBe(true);
          }
        }
        const open = world.deliveries.filter((delivery) => !delivery.settled).map((delivery) => delivery.eventId);
        expect(open, 'deliveries open at rest').toEqual([]);
        expect(world.lanes.rowsInMemory).toBe(0);
        expect(world.lanes.sendsInFlight).toBe(0);
      },
    ),
    { numRuns: 600 },
  );
});
