import { isNightporterError } from '@nightporter/protocol';
import { expect, it } from 'vitest';
import { limitsOf } from './options.js';

it('Limits that are not given have their defaults', () => {
  expect(limitsOf({ endpoints: 'proxy:8081', closeTimeoutMs: 500 })).toEqual({
    requestTimeoutMs: 3_000,
    startTimeoutMs: 10_000,
    closeTimeoutMs: 500,
  });
});

it.each([999, 1.5, Number.NaN, 600_001])('A request timeout of %d ms is refused with the accepted range', (value) => {
  expect(() => limitsOf({ endpoints: 'proxy:8081', requestTimeoutMs: value })).toThrow(
    `RocketMQ requestTimeoutMs is ${value}; accepted: whole milliseconds from 1000 to 600000.`,
  );
});

it('A limit out of range is a configuration error', () => {
  try {
    limitsOf({ endpoints: 'proxy:8081', startTimeoutMs: 0 });
    expect.unreachable();
  } catch (error) {
    expect(isNightporterError(error, 'NP_CONFIG_INVALID')).toBe(true);
  }
});
