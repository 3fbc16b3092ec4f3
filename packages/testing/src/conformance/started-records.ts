import type { StartedRecords } from '@nightporter/consumer';
import { eventId } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';

export interface StartedFixture {
  readonly started: StartedRecords;
}

const [first, second, third] = ['event-1', 'event-2', 'event-3'].map(eventId) as [
  ReturnType<typeof eventId>,
  ReturnType<typeof eventId>,
  ReturnType<typeof eventId>,
];

/** Every keeper of started records keeps to this. The fixture brings a fresh group for each test. */
export function startedRecordsConformance(name: string, makeFixture: () => Promise<StartedFixture>): void {
  describe(`${name} as a keeper of started records`, () => {
    it('knows of nothing elsewhere at first, nor of what the same owner has in hand', async () => {
      const { started } = await makeFixture();
      expect(await started.begin({ owner: 'one', loop: 0, events: [first, second] })).toEqual([]);
      expect(await started.begin({ owner: 'one', loop: 1, events: [second, third] })).toEqual([]);
      expect(await started.begin({ owner: 'one', loop: 0, events: [first, second] })).toEqual([]);
    });

    it('names what stands under another owner', async () => {
      const { started } = await makeFixture();
      await started.begin({ owner: 'one', loop: 0, events: [first] });
      await started.begin({ owner: 'one', loop: 1, events: [second] });
      expect(await started.begin({ owner: 'two', loop: 0, events: [first, second, third] })).toEqual([first, second]);
    });

    it('forgets what a loop had in hand when it begins something else', async () => {
      const { started } = await makeFixture();
      await started.begin({ owner: 'one', loop: 0, events: [first] });
      await started.begin({ owner: 'one', loop: 0, events: [second] });
      expect(await started.begin({ owner: 'two', loop: 0, events: [first, second] })).toEqual([second]);
    });
  });
}
