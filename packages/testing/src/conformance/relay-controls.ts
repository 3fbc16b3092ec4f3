import type { RelayControls } from '@nightporter/relay';
import { NOTHING_PAUSED } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';

export interface ControlsFixture {
  readonly controls: RelayControls;
  /** What an operator does; null stands for everything. */
  readonly pause: (topic: string | null) => Promise<unknown>;
  readonly resume: (topic: string | null) => Promise<unknown>;
}

/** The controls of every relay keep to this. The fixture brings a fresh database for each test. */
export function relayControlsConformance(name: string, makeFixture: () => Promise<ControlsFixture>): void {
  describe(`${name} as the controls of a relay`, () => {
    it('tell that nothing is paused where nobody has paused anything', async () => {
      const { controls } = await makeFixture();
      expect(await controls.readPause()).toEqual(NOTHING_PAUSED);
    });

    it('tell what is paused, topic by topic and as a whole, until it is resumed', async () => {
      const { controls, pause, resume } = await makeFixture();
      await pause('orders-events');
      await pause('all');
      await pause(null);
      await pause(null);
      expect(await controls.readPause()).toEqual({ all: true, topics: ['all', 'orders-events'] });
      await resume(null);
      expect(await controls.readPause()).toEqual({ all: false, topics: ['all', 'orders-events'] });
      await resume('all');
      await resume('orders-events');
      await resume('never-paused');
      expect(await controls.readPause()).toEqual(NOTHING_PAUSED);
    });
  });
}
