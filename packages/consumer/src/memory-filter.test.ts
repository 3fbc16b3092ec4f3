import { eventId } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { createMemoryFilter } from './memory-filter.js';

const ids = ['a', 'b', 'c', 'd'].map(eventId);
const [a, b, c, d] = ids as [(typeof ids)[0], (typeof ids)[0], (typeof ids)[0], (typeof ids)[0]];

describe('a memory filter', () => {
  it('knows what it was told', async () => {
    const filter = createMemoryFilter();
    await filter.remember([a, b]);
    expect([...(await filter.seen([a, b, c]))]).toEqual([a, b]);
  });

  it('never holds more than it may, and forgets what was longest unused', async () => {
    const filter = createMemoryFilter({ eventsMax: 3 });
    await filter.remember([a, b, c]);
    await filter.seen([a]);
    await filter.remember([d]);
    expect([...(await filter.seen(ids))]).toEqual([a, c, d]);
    await filter.remember(ids);
    expect([...(await filter.seen(ids))]).toEqual([b, c, d]);
  });

  it('is refused without a size', () => {
    expect(() => createMemoryFilter({ eventsMax: 0 })).toThrow(/eventsMax of a memory filter is 0/);
  });
});
