import { describe, expect, it } from 'vitest';
import { toDatabase } from '../memory/index.js';
import { Wakeup, isNightporterError } from '@nightporter/protocol';
import { Incarnation } from './incarnation.js';
import { seededRandom } from './random.js';
import { Schedule } from './schedule.js';
import { simulatedNetwork, type NetworkFaults } from './simulated-network.js';
import { Trace } from './trace.js';

const CALM: NetworkFaults = { databaseFaults: 0, brokerFaults: 0, crashAtCalls: 0, slowness: 1, timeOutMs: 1_000 };

function setUp(faults: Partial<NetworkFaults>, seed = 1) {
  const schedule = new Schedule(seededRandom(seed));
  const life = new Incarnation('p#1', schedule, 0);
  const trace = new Trace(() => schedule.nowMs, { tell: true });
  const late = { count: 0 };
  const world = { schedule, random: seededRandom(seed), trace, late, faults: { ...CALM, ...faults } };
  return { schedule, life, trace, late, network: simulatedNetwork(life, world) };
}

/** Makes one call, lets 60 s pass, and tells whether it was carried out, and what its caller was told. */
async function callOnce(faults: Partial<NetworkFaults>, seed: number) {
  const { schedule, life, network, trace } = setUp(faults, seed);
  const executions: number[] = [];
  let told = 'nothing';
  const operation = (): string => {
    executions.push(schedule.nowMs);
    return 'answer';
  };
  void network.call('some.call', operation, toDatabase('some.call')).then(
    (answer) => (told = answer),
    (error: unknown) => (told = isNightporterError(error) ? error.code : 'another error'),
  );
  await schedule.runUntil(60_000);
  return { executedMs: executions[0] ?? null, told, alive: life.alive, story: trace.lines.join('\n') };
}

describe('the simulated network', () => {
  it('carries a call out and answers it after a while', async () => {
    const { executedMs, told } = await callOnce({}, 1);
    expect(executedMs).toBeGreaterThan(0);
    expect(told).toBe('answer');
  });

  it('loses calls, loses answers, refuses, and carries out late: each of them', async () => {
    const kinds = new Set<string>();
    for (let seed = 1; seed <= 60; seed += 1) {
      const { executedMs, told } = await callOnce({ databaseFaults: 1 }, seed);
      const isLate = (executedMs ?? 0) > 1_000;
      kinds.add(`${executedMs === null ? 'not executed' : isLate ? 'executed late' : 'executed'}, told ${told}`);
    }
    expect([...kinds].sort()).toEqual([
      'executed late, told NP_STORE_UNAVAILABLE',
      'executed, told NP_STORE_UNAVAILABLE',
      'executed, told answer',
      'not executed, told NP_STORE_UNAVAILABLE',
    ]);
  });

  it('lets a process die before a call, while it is on its way, and before its answer is read', async () => {
    const kinds = new Set<string>();
    for (let seed = 1; seed <= 40; seed += 1) {
      const { executedMs, told, alive, story } = await callOnce({ crashAtCalls: 1 }, seed);
      expect({ told, alive }).toEqual({ told: 'nothing', alive: false });
      kinds.add(`${/\((.*)\)/.exec(story)?.[1] ?? ''}: ${executedMs === null ? 'not executed' : 'executed'}`);
    }
    expect([...kinds].sort()).toEqual([
      'before sending: not executed',
      'before the answer: executed',
      'on the way: executed',
    ]);
  });

  it('answers a long poll when there is something to tell, and after its time when there is not', async () => {
    const { schedule, network } = setUp({});
    const changes = new Wakeup();
    const items: string[] = [];
    const longPoll = { forMs: 2_000, isEmpty: (found: readonly string[]) => found.length === 0, changes };
    const answers: string[] = [];
    const poll = async (): Promise<void> => {
      const found = await network.call('queue.poll', () => items.splice(0), { ...toDatabase('queue.poll'), longPoll });
      answers.push(`${found.join()} after ${Math.round(schedule.nowMs / 100) / 10} s`);
    };
    void poll();
    schedule.after(500, () => {
      items.push('item');
      changes.ring();
    });
    await schedule.runUntil(1_000);
    void poll();
    await schedule.runUntil(5_000);
    expect(answers).toEqual(['item after 0.5 s', ' after 3 s']);
  });
});
