import type { InstanceRegistry } from '@nightporter/relay';
import { describe, expect, it } from 'vitest';

export interface InstanceFixture {
  readonly instances: InstanceRegistry;
  /** Lets the database's clock go on. */
  readonly passTime: (byMs: number) => Promise<void>;
}

const SHORT_MS = 500;
const LONG_MS = 60_000;
const MAP = ['2-0', '2-1'];

/** Every registry of instances keeps to this. The fixture brings a fresh one for each test. */
export function instanceRegistryConformance(name: string, makeFixture: () => Promise<InstanceFixture>): void {
  describe(`${name} as a registry of instances`, () => {
    it('tells all that live, the one that announces itself included', async () => {
      const { instances } = await makeFixture();
      expect(await instances.announce({ map: MAP, instance: 'a', durationMs: LONG_MS })).toEqual(['a']);
      const living = await instances.announce({ map: MAP, instance: 'b', durationMs: LONG_MS });
      expect([...living].sort()).toEqual(['a', 'b']);
      expect([...(await instances.announce({ map: MAP, instance: 'a', durationMs: LONG_MS }))].sort()).toEqual([
        'a',
        'b',
      ]);
    });

    it('tells none that has other shards', async () => {
      const { instances } = await makeFixture();
      await instances.announce({ instance: 'a', map: ['2-0'], durationMs: LONG_MS });
      await instances.announce({ instance: 'b', map: ['3-0', '3-1', '3-2'], durationMs: LONG_MS });
      expect(await instances.announce({ map: MAP, instance: 'c', durationMs: LONG_MS })).toEqual(['c']);
    });

    it('no longer tells one that has left, at once', async () => {
      const { instances } = await makeFixture();
      await instances.announce({ map: MAP, instance: 'a', durationMs: LONG_MS });
      await instances.leave({ instance: 'a' });
      await instances.leave({ instance: 'never there' });
      expect(await instances.announce({ map: MAP, instance: 'b', durationMs: LONG_MS })).toEqual(['b']);
    });

    it('no longer tells one that has not announced itself for its duration', async () => {
      const { instances, passTime } = await makeFixture();
      await instances.announce({ map: MAP, instance: 'a', durationMs: SHORT_MS });
      await passTime(SHORT_MS + 50);
      expect(await instances.announce({ map: MAP, instance: 'b', durationMs: LONG_MS })).toEqual(['b']);
    });

    it('tells one for longer that announces itself again', async () => {
      const { instances, passTime } = await makeFixture();
      await instances.announce({ map: MAP, instance: 'a', durationMs: SHORT_MS });
      await instances.announce({ map: MAP, instance: 'a', durationMs: LONG_MS });
      await passTime(SHORT_MS + 50);
      expect([...(await instances.announce({ map: MAP, instance: 'b', durationMs: LONG_MS }))].sort()).toEqual([
        'a',
        'b',
      ]);
    });
  });
}
