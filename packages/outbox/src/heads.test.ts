import { aggregateKey } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { refusalOf, type Head } from './heads.js';

const aggregate = aggregateKey({ source: 's', aggregateType: 't', aggregateId: '1' });

describe('the head of an aggregate', () => {
  it.each<[string, Head | null, number | undefined, string | undefined, string | null]>([
    ['takes any event that insists on nothing', { version: 3, eventKey: 'k' }, undefined, undefined, null],
    ['takes a first event that insists on nothing', null, undefined, undefined, null],
    ['takes an event at its expected version', { version: 3, eventKey: 'k' }, 3, undefined, null],
    ['takes a first event that expects to be the first', null, 0, undefined, null],
    ['takes a first event with a key', null, undefined, 'k', null],
    ['takes an event with the key of the first', { version: 3, eventKey: 'k' }, undefined, 'k', null],
    [
      'refuses an event that expects an older version',
      { version: 3, eventKey: 'k' },
      2,
      undefined,
      'NP_VERSION_EXPECTED',
    ],
    ['refuses an event that expects a newer version', { version: 3, eventKey: 'k' }, 4, 'k', 'NP_VERSION_EXPECTED'],
    [
      'refuses an event that expects to be the first and is not',
      { version: 1, eventKey: 'k' },
      0,
      undefined,
      'NP_VERSION_EXPECTED',
    ],
    ['refuses an event that expects others before it', null, 1, undefined, 'NP_VERSION_EXPECTED'],
    ['refuses an event with another key', { version: 3, eventKey: 'k' }, 3, 'other', 'NP_EVENT_INVALID'],
  ])('%s', (_name, head, expectedVersion, eventKey, code) => {
    const refusal = refusalOf(head, { aggregate, expectedVersion, eventKey, defaultEventKey: 'default' });
    expect(refusal?.code ?? null).toBe(code);
  });
});
