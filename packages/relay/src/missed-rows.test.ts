import { eventId } from '@nightporter/protocol';
import { expect, test } from 'vitest';
import { MissedRows } from './missed-rows.js';

const a = eventId('a');
const b = eventId('b');

test('a row counts as missed when the stream, asked after the grace, has nothing more and has not brought it', () => {
  const missed = new MissedRows(100);
  missed.foundBySweep(a, 0);
  expect(missed.streamIsEmpty(99)).toBe(0);
  expect(missed.streamIsEmpty(100)).toBe(1);
  expect(missed.streamIsEmpty(200)).toBe(0);
});

test('a row that the stream brings later was only on its way', () => {
  const missed = new MissedRows(100);
  missed.foundBySweep(a, 0);
  missed.foundBySweep(b, 50);
  missed.broughtByStream(a);
  expect(missed.streamIsEmpty(149)).toBe(0);
  expect(missed.streamIsEmpty(150)).toBe(1);
});

test('being found again by the next sweep does not prolong the grace', () => {
  const missed = new MissedRows(100);
  missed.foundBySweep(a, 0);
  missed.foundBySweep(a, 90);
  expect(missed.streamIsEmpty(100)).toBe(1);
});

test('rows that were found one soon after the other are told of together', () => {
  const missed = new MissedRows(100);
  missed.foundBySweep(a, 0);
  missed.foundBySweep(b, 50);
  expect(missed.streamIsEmpty(149)).toBe(0);
  expect(missed.streamIsEmpty(150)).toBe(2);
});

test('what is found without an end is told of all the same', () => {
  const missed = new MissedRows(100);
  for (let atMs = 0; atMs <= 400; atMs += 50) missed.foundBySweep(eventId(`row ${atMs}`), atMs);
  expect(missed.streamIsEmpty(399)).toBe(0);
  expect(missed.streamIsEmpty(400)).toBe(7);
});
