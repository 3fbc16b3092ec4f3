import type { AggregateKey } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { judgeRow, type RowFacts } from './judge.js';

const rule = { nowMs: 1_000_000, graceMs: 1_000, inboxRetentionMs: 500_000 };
const old: RowFacts = {
  eventId: 'e3',
  version: 3,
  publishedAtMs: 900_000,
  position: { version: 3, startVersion: 0, state: 'open', startReason: null },
  settledAs: { outcome: 'applied', isEdited: false },
  settledHere: 'e3',
  parkedHere: null,
  parkedNext: null,
  watermarkMs: 990_000,
  digest: 'd',
  originalDigest: 'd',
  form: 'original',
  unanswered: false,
  settledDigest: 'd',
};
const nothing: Partial<RowFacts> = { settledAs: null, settledHere: null, settledDigest: null };
const waiting: Partial<RowFacts> = { ...nothing, position: { ...old.position, version: 2 } };
const parked = { eventId: 'e3', attempts: 2, nextRetryAt: null, failure: null };
const tombstone: Partial<RowFacts> = { form: 'tombstone', digest: 't' };

describe('a published row in a group is', () => {
  it.each<[string, Partial<RowFacts>, string]>([
    ['settled', {}, 'settled'],
    ['settled as an operator had edited it', { settledAs: { outcome: 'applied', isEdited: true } }, 'settled'],
    ['altered where the digest is another', { settledDigest: 'x' }, 'altered'],
    [
      'settled as the tombstone that was published',
      { ...tombstone, settledDigest: 't', settledAs: { outcome: 'skipped', isEdited: false } },
      'settled',
    ],
    [
      'settled as the original that had no answer, where a tombstone followed',
      { ...tombstone, unanswered: true },
      'settled',
    ],
    ['altered where the original was never on its way', tombstone, 'altered'],
    [
      'altered where it is neither the tombstone nor the original that had no answer',
      { ...tombstone, unanswered: true, settledDigest: 'x' },
      'altered',
    ],
    ['applied although it was a tombstone', { ...tombstone, settledDigest: 't' }, 'outcome'],
    ['settled ahead of its position', { position: { ...old.position, version: 2 } }, 'position-behind'],
    ['before the start', { ...nothing, position: { ...old.position, startVersion: 3 } }, 'before-start'],
    ['settled so long ago that its record has expired', { ...nothing, publishedAtMs: 400_000 }, 'expired'],
    ['missing where its record is gone before its time', nothing, 'missing'],
    ['another event', { ...nothing, settledHere: 'other' }, 'conflict'],
    [
      'a dead letter, however young',
      { ...waiting, publishedAtMs: 999_900, parkedHere: { ...parked, state: 'dead' } },
      'dead-letter',
    ],
    ['under way while young', { ...waiting, publishedAtMs: 999_900, watermarkMs: 0 }, 'in-flight'],
    [
      'under way while young, and tried again',
      { ...waiting, publishedAtMs: 999_900, parkedHere: { ...parked, state: 'retry' } },
      'in-flight',
    ],
    ['unsettled once it is old', { ...waiting, parkedHere: { ...parked, state: 'retry' } }, 'unsettled'],
    ['missing once it is old', { ...waiting, watermarkMs: 0 }, 'missing'],
    [
      'missing once the sweep has passed it, however young',
      { ...waiting, publishedAtMs: 999_900, watermarkMs: 999_950 },
      'missing',
    ],
  ])('%s', (_what, more, expected) => {
    const verdict = judgeRow({ ...old, ...more }, rule);
    expect(verdict.kind === 'different' ? verdict.difference : verdict.kind).toBe(expected);
  });
});

const place = {
  group: 'points',
  database: 'points-db',
  eventId: 'e3',
  aggregate: 'orders/order/7' as AggregateKey,
  version: 3,
};

describe('what mends a difference', () => {
  it.each<[string, Partial<RowFacts>, string | null]>([
    [
      'that is missing',
      { ...waiting, watermarkMs: 0 },
      'nightporter replay points --aggregates orders/order/7 --by <you> --reason <why>',
    ],
    [
      'that is a dead letter',
      { ...waiting, parkedHere: { ...parked, state: 'dead' } },
      'nightporter dead retry points e3 --by <you> --reason <why>',
    ],
    [
      'whose record is gone',
      nothing,
      'db.getSiblingDB("points-db").positions.updateOne({ _id: "points|orders/order/7" }, { $set: { version: 2 } })',
    ],
    [
      'that is ahead of its position',
      { position: { ...old.position, version: 2 } },
      'nightporter replay points --aggregates orders/order/7 --by <you> --reason <why>',
    ],
    ['that is another event', { ...nothing, settledHere: 'other' }, 'nightporter timeline other'],
    ['that somebody has to judge', { settledDigest: 'x' }, null],
  ])('%s', (_what, more, expected) => {
    const verdict = judgeRow({ ...old, ...more }, rule);
    const mend = verdict.kind === 'different' ? verdict.mendIn(place) : verdict.kind;
    if (expected === null) expect(mend).toBeNull();
    else expect(mend).toContain(expected);
  });
});
