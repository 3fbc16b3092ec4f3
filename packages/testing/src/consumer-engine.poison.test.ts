import type { StartedRecords } from '@nightporter/consumer';
import { NightporterError, sleep } from '@nightporter/protocol';
import { describe, expect, test } from 'vitest';
import { world, start, failingFor, history, position, isDrained } from './consumer-engine.fixture.js';
import {
  keyFor,
  mortalPorts,
  send,
  settled,
  startMember,
  startedRecords,
  type MemberSetup,
  type Mortal,
} from './consumer-engine.support.js';

describe('a poison event', () => {
  test('holds back its own aggregate only, and its successors follow in order once it works', async () => {
    const poison = new Set(['a-2']);
    const member = start({ handlers: failingFor(poison) });
    send(world, ...history('a', 4), ...history('b', 3));
    await settled(world);
    expect(member.effects()).toEqual(['a-1', 'b-1', 'b-2', 'b-3']);
    expect(isDrained()).toBe(true);
    expect(position('a')).toMatchObject({ version: 1, state: 'blocked' });
    poison.clear();
    await world.clock.advance(1_500);
    expect(member.effects().filter((id) => id.startsWith('a'))).toEqual(['a-1', 'a-2', 'a-3', 'a-4']);
    expect(position('a')).toMatchObject({ version: 4, state: 'open' });
    expect(member.parked()).toEqual([]);
  });

  test('costs its neighbours in the batch one more run, and commits them together', async () => {
    const runs: string[] = [];
    const commits: number[] = [];
    const member = start({ handlers: failingFor(new Set(['c-1']), runs) });
    world.group('billing').onCommitted = ({ settled: records }) => commits.push(records.length);
    send(world, ...['a', 'b', 'c', 'd', 'e'].map((aggregateId) => ({ aggregateId, version: 1 })));
    await settled(world);
    expect(runs).toEqual(['a-1', 'b-1', 'c-1', 'a-1', 'b-1', 'c-1', 'd-1', 'e-1']);
    expect(commits).toEqual([2, 0, 2]);
    expect(member.consumer.snapshot()).toMatchObject({ applied: 4, parked: { retry: 1 }, acknowledged: 5 });
  });

  test('that fails twice and then works is applied once, not sooner than its delays', async () => {
    const at: number[] = [];
    const attempts: number[] = [];
    const member = start({
      handlers: {
        OrderPaid: async ({ attempt, event, session }) => {
          attempts.push(attempt);
          at.push(world.clock.now());
          await session.effect(event.eventId);
          if (attempts.length < 3) throw new Error('not yet');
        },
      },
    });
    send(world, { aggregateId: 'a', version: 1 });
    await world.clock.advance(8_000);
    expect(attempts).toEqual([1, 2, 3]);
    expect(member.effects()).toEqual(['a-1']);
    expect(at[1]! - at[0]!).toBeGreaterThanOrEqual(1_000);
    expect(at[2]! - at[1]!).toBeGreaterThanOrEqual(5_000);
    expect(member.consumer.snapshot().parked.dead).toBe(0);
  });

  test('whose attempts are spent is dead, and its successors run in order after an operator has skipped it', async () => {
    const runs: string[] = [];
    const member = start({
      handlers: failingFor(new Set(['a-1']), runs),
      options: { retryScheduleMs: [100], attemptsMax: 3 },
    });
    send(world, ...history('a', 3));
    await world.clock.advance(10_000);
    expect(runs).toEqual(['a-1', 'a-1', 'a-1']);
    expect(member.parked()).toMatchObject([{ state: 'dead', attempts: 3, failure: { message: 'poison a-1' } }, {}, {}]);
    world.group('billing').skipDead(keyFor('a'), member.parked()[0]!.event.envelope.aggregateVersion);
    await world.clock.advance(1_000);
    expect(member.effects()).toEqual(['a-2', 'a-3']);
    expect(member.inbox().map(({ outcome }) => outcome)).toEqual(['skipped', 'applied', 'applied']);
  });

  test('that is dead runs again, from its first attempt, when an operator says so', async () => {
    const poison = new Set(['a-1']);
    const member = start({ handlers: failingFor(poison), options: { retryScheduleMs: [100], attemptsMax: 1 } });
    send(world, ...history('a', 2));
    await world.clock.advance(1_000);
    poison.clear();
    world.group('billing').retryDead(keyFor('a'), member.parked()[0]!.event.envelope.aggregateVersion);
    await world.clock.advance(1_000);
    expect(member.effects()).toEqual(['a-1', 'a-2']);
    expect(member.inbox()[0]).toMatchObject({ attempts: 1 });
  });

  test('that never ends costs its neighbours its time limit once', async () => {
    const member = start({
      options: { handlerMs: 10_000, retryScheduleMs: [60_000] },
      handlers: {
        OrderPaid: ({ event, session }) =>
          event.aggregateId === 'b' ? new Promise<void>(() => undefined) : session.effect(event.eventId),
      },
    });
    send(world, ...['a', 'b', 'c'].map((aggregateId) => ({ aggregateId, version: 1 })));
    await world.clock.advance(10_500);
    expect(member.effects()).toEqual(['a-1', 'c-1']);
  });

  test('that takes longer than its limit has failed, is told so, and can emit no more', async () => {
    const late: Promise<unknown>[] = [];
    const aborted: unknown[] = [];
    const member = start({
      options: { handlerMs: 2_000, attemptsMax: 1 },
      handlers: {
        OrderPaid: async ({ emit, signal }) => {
          signal.addEventListener('abort', () => aborted.push(signal.reason));
          await new Promise<void>((resolve) => {
            world.clock.after(5_000, resolve);
          });
          late.push(
            emit({ aggregateType: 'x', aggregateId: 'x', eventType: 'Late', payload: null }).catch(
              (error: unknown) => error,
            ),
          );
        },
      },
    });
    send(world, { aggregateId: 'a', version: 1 });
    await world.clock.advance(2_500);
    expect(member.parked()).toMatchObject([{ state: 'dead', failure: { code: 'NP_HANDLER_FAILED' } }]);
    expect(aborted).toHaveLength(1);
    await world.clock.advance(4_000);
    expect(await Promise.all(late)).toMatchObject([{ code: 'NP_NO_TRANSACTION' }]);
    expect([...world.database.outbox.rows()]).toEqual([]);
  });

  /** Processes that die in the handler of `a-1`, one after the other, each started when the one before is dead. */
  async function dieAgainAndAgain(
    setup: Pick<MemberSetup, 'options'> & { started?: StartedRecords; othersMs?: number },
  ): Promise<number[]> {
    const attemptsOnRecord: number[] = [];
    for (let process = 0; process < 8; process += 1) {
      const mortal: Mortal = { isDead: false };
      startMember(world, {
        options: { attemptsMax: 2, claimMs: 40_000, ...setup.options },
        ports: (ports) => ({
          ...mortalPorts(ports, mortal),
          ...(setup.started === undefined ? {} : { started: setup.started }),
        }),
        handlers: {
          OrderPaid: async ({ event, session }) => {
            if (event.eventId === 'a-1') {
              mortal.isDead = true;
              const [row] = world.group('billing').parked();
              attemptsOnRecord.push(row?.attempts ?? 0);
              await new Promise(() => undefined);
            }
            if (setup.othersMs !== undefined) await sleep(world.clock, setup.othersMs);
            // What a dead process had in hand comes to nothing.
            if (mortal.isDead) await new Promise(() => undefined);
            await session.effect(event.eventId);
          },
        },
      });
      await world.clock.advance(45_000);
      mortal.isDead = true;
    }
    return attemptsOnRecord;
  }

  test('that ends its process is charged before it runs, isolated, and dead when its attempts are spent', async () => {
    send(world, ...history('b', 1), ...history('a', 2), ...history('c', 1));
    const started = startedRecords();
    expect(await dieAgainAndAgain({ options: { deliveriesTrusted: 100 }, started })).toEqual([0, 1, 2]);
    expect(world.group('billing').effects).toEqual(['b-1', 'c-1']);
    expect(world.group('billing').parked()).toMatchObject([
      { state: 'dead', attempts: 2, failure: { code: 'NP_HANDLER_FAILED' } },
      { state: 'behind', attempts: 0 },
    ]);
  });

  test('that ends its process takes none into the dead letters that was in hand beside it', async () => {
    const others = ['b', 'c', 'd', 'e', 'f', 'g'];
    send(world, ...others.flatMap((name) => history(name, 1)), ...history('a', 1));
    const options = { deliveriesTrusted: 100, retryConcurrency: 4 };
    // They take longer than it takes to die, so that each that is claimed beside it is charged for its death.
    await dieAgainAndAgain({ options, started: startedRecords(), othersMs: 1_000 });
    expect(world.group('billing').effects.toSorted()).toEqual(others.map((name) => `${name}-1`));
    expect(world.group('billing').parked()).toMatchObject([{ event: { envelope: { eventId: 'a-1' } }, state: 'dead' }]);
  });

  test('that ends its process is found by the delivery count where nobody keeps record of what was started', async () => {
    send(world, ...history('b', 1), ...history('a', 2), ...history('c', 1));
    expect(await dieAgainAndAgain({ options: { deliveriesTrusted: 2 } })).toEqual([0, 0, 1, 2]);
    expect(world.group('billing').effects).toEqual(['b-1', 'c-1']);
    expect(world.group('billing').parked()).toMatchObject([{ state: 'dead', attempts: 2 }, {}]);
  });

  test('is not run before it is on record as started', async () => {
    let isDown = true;
    const member = start({
      ports: () => ({
        started: {
          begin: () =>
            isDown ? Promise.reject(new NightporterError('NP_STORE_UNAVAILABLE', 'gone')) : Promise.resolve([]),
        },
      }),
    });
    send(world, ...history('a', 1));
    await world.clock.advance(5_000);
    expect(member.effects()).toEqual([]);
    expect(member.consumer.snapshot().paused).toBe(true);
    isDown = false;
    await world.clock.advance(12_000);
    expect(member.effects()).toEqual(['a-1']);
  });
});
