import { beforeEach, expect, test } from 'vitest';
import { TopicGates } from './topic-gates.js';

let gates: TopicGates<string>;

beforeEach(() => {
  gates = new TopicGates();
});

test('a closed topic admits nobody, a probing one the lane that probes', () => {
  expect(gates.admits('orders', 'a')).toBe(true);
  gates.close('orders', 'a');
  expect([gates.admits('orders', 'a'), gates.admits('orders', 'b')]).toEqual([false, false]);
  expect(gates.admits('invoices', 'a')).toBe(true);
  expect(gates.awaitsProbe('orders')).toBe(true);
  gates.probe('orders', 'b');
  expect(gates.awaitsProbe('orders')).toBe(false);
  expect([gates.admits('orders', 'a'), gates.admits('orders', 'b')]).toEqual([false, true]);
  expect([gates.probedBy('a'), gates.probedBy('b')]).toEqual([null, 'orders']);
});

test('failures in a row are those of probes; others that were in flight do not count', () => {
  expect(gates.close('orders', 'a')).toBe(1);
  expect(gates.close('orders', 'b')).toBe(0);
  gates.probe('orders', 'a');
  expect(gates.close('orders', 'b')).toBe(0);
  expect(gates.close('orders', 'a')).toBe(2);
});

test('opening is told once, and counts anew', () => {
  gates.close('orders', 'a');
  expect([gates.open('orders'), gates.open('orders')]).toEqual([true, false]);
  gates.probe('orders', 'a');
  expect([gates.awaitsProbe('orders'), gates.closed]).toEqual([false, []]);
  expect(gates.close('orders', 'a')).toBe(1);
});

test('whether a topic has taken a message since some moment', () => {
  expect(gates.hasSucceededSince('orders', 0)).toBe(false);
  gates.succeeded('orders', 10);
  expect([gates.hasSucceededSince('orders', 10), gates.hasSucceededSince('orders', 11)]).toEqual([true, false]);
});
