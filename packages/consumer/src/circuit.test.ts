import { Wakeup, type Clock } from '@nightporter/protocol';
import { beforeEach, expect, test } from 'vitest';
import { StoreCircuit, backoffMs } from './circuit.js';

const limits = { firstMs: 100, maxMs: 1_000 };
let nowMs = 0;
const timers: { atMs: number; run: () => void }[] = [];
const clock: Clock = {
  now: () => nowMs,
  after: (delayMs, run) => {
    const timer = { atMs: nowMs + delayMs, run };
    timers.push(timer);
    return () => {
      if (timers.includes(timer)) timers.splice(timers.indexOf(timer), 1);
    };
  },
};

async function passTo(atMs: number): Promise<void> {
  nowMs = atMs;
  for (const timer of timers.filter((one) => one.atMs <= atMs)) timer.run();
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
}

beforeEach(() => {
  nowMs = 0;
  timers.length = 0;
});

test('the wait doubles up to the longest, and jitter only adds to it', () => {
  expect([1, 2, 3, 4, 5, 60].map((failures) => backoffMs(limits, failures, () => 0))).toEqual([
    100, 200, 400, 800, 1_000, 1_000,
  ]);
  expect(backoffMs(limits, 1, () => 0.5)).toBe(150);
});

test('calls wait while it is open, and all go through once the pause is over', async () => {
  const circuit = new StoreCircuit({ clock, random: () => 0, limits, longOutageMs: 5_000 });
  const stopping = new Wakeup();
  expect(await circuit.whenClosed(stopping)).toBe(true);
  circuit.failed();
  let passed = 0;
  const waits = [circuit.whenClosed(stopping), circuit.whenClosed(stopping)].map((wait) =>
    wait.then(() => (passed += 1)),
  );
  await passTo(99);
  expect(passed).toBe(0);
  await passTo(100);
  await Promise.all(waits);
  expect(circuit.isOpen).toBe(true);
});

test('calls that fail together count as one failure', async () => {
  const circuit = new StoreCircuit({ clock, random: () => 0, limits, longOutageMs: 5_000 });
  for (let call = 0; call < 8; call += 1) circuit.failed();
  const wait = circuit.whenClosed(new Wakeup());
  await passTo(100);
  expect(await wait).toBe(true);
});

test('a success closes it at once and forgets the failures', async () => {
  const circuit = new StoreCircuit({ clock, random: () => 0, limits, longOutageMs: 5_000 });
  circuit.failed();
  await passTo(100);
  circuit.failed();
  const wait = circuit.whenClosed(new Wakeup());
  circuit.succeeded();
  expect(await wait).toBe(true);
  expect(circuit.isOpen).toBe(false);
  expect(timers).toEqual([]);
});

test('nobody waits for it when the consumer is stopping', async () => {
  const circuit = new StoreCircuit({ clock, random: () => 0, limits, longOutageMs: 5_000 });
  const stopping = new Wakeup();
  circuit.failed();
  const wait = circuit.whenClosed(stopping);
  stopping.ringForGood();
  expect(await wait).toBe(false);
});

test('after a long outage new claims wait until those who held theirs have tried again', async () => {
  const circuit = new StoreCircuit({ clock, random: () => 0, limits, longOutageMs: 5_000 });
  circuit.failed();
  await passTo(4_999);
  expect(circuit.holdersFirstMs).toBe(0);
  await passTo(5_000);
  expect(circuit.holdersFirstMs).toBe(1_000);
  circuit.succeeded();
  expect(circuit.holdersFirstMs).toBe(2_000);
  await passTo(7_000);
  expect(circuit.holdersFirstMs).toBe(0);
});

test('a short outage keeps no claim waiting', async () => {
  const circuit = new StoreCircuit({ clock, random: () => 0, limits, longOutageMs: 5_000 });
  circuit.failed();
  await passTo(4_000);
  circuit.succeeded();
  expect(circuit.holdersFirstMs).toBe(0);
});
