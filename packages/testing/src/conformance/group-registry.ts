import type { GroupRegistry } from '@nightporter/consumer';
import { describe, expect, it } from 'vitest';

export interface RegistryFixture {
  /** Of a group that was registered from the beginning for the topics `b-events` and `a-events`. */
  readonly registry: GroupRegistry;
  /** Of a group that nobody registered. */
  readonly unknown: GroupRegistry;
  /** The moment of the registration, on the database's clock. */
  readonly floorMs: number;
  readonly passTime: (byMs: number) => Promise<void>;
}

const CLAIM_MS = 400;

/** Every registry keeps to this. The fixture brings a fresh group for each test. */
export function groupRegistryConformance(name: string, makeFixture: () => Promise<RegistryFixture>): void {
  describe(`${name} as a registry of groups`, () => {
    describeClaims(makeFixture);
    describeWatermark(makeFixture);
  });
}

function describeClaims(makeFixture: () => Promise<RegistryFixture>): void {
  it('tells how far a group is, and of none that nobody registered', async () => {
    const { floorMs, registry, unknown } = await makeFixture();
    expect(await registry.standing()).toMatchObject({ state: 'bootstrapping', watermarkMs: 0 });
    expect([...((await registry.standing())?.topics ?? [])].sort()).toEqual(['a-events', 'b-events']);
    await registry.advance({ toMs: floorMs + 10, floorMs });
    expect(await registry.standing()).toMatchObject({ state: 'live', watermarkMs: floorMs + 10 });
    expect(await unknown.standing()).toBeNull();
  });

  it('gives the sweep to one member at a time, and to another once the claim is over', async () => {
    const { registry, passTime } = await makeFixture();
    const claims = await Promise.all(['x', 'y', 'z'].map((owner) => registry.claim({ owner, durationMs: CLAIM_MS })));
    expect(claims.map(({ kind }) => kind).sort()).toEqual(['claimed', 'held', 'held']);
    await passTime(CLAIM_MS + 50);
    expect((await registry.claim({ owner: 'w', durationMs: CLAIM_MS })).kind).toBe('claimed');
  });

  it('lets the holder renew its claim', async () => {
    const { registry, passTime } = await makeFixture();
    for (let round = 0; round < 3; round += 1) {
      expect((await registry.claim({ owner: 'x', durationMs: CLAIM_MS })).kind).toBe('claimed');
      await passTime(CLAIM_MS / 2);
    }
    expect((await registry.claim({ owner: 'y', durationMs: CLAIM_MS })).kind).toBe('held');
  });

  it('gives a released claim away at once, and leaves alone what another holds', async () => {
    const { registry } = await makeFixture();
    await registry.claim({ owner: 'x', durationMs: 60_000 });
    await registry.release('y');
    expect((await registry.claim({ owner: 'y', durationMs: 60_000 })).kind).toBe('held');
    await registry.release('x');
    expect((await registry.claim({ owner: 'y', durationMs: 60_000 })).kind).toBe('claimed');
  });

  it('says so where the group is not registered', async () => {
    const { unknown } = await makeFixture();
    expect(await unknown.claim({ owner: 'x', durationMs: CLAIM_MS })).toEqual({ kind: 'unregistered' });
    await unknown.advance({ toMs: 1_000, floorMs: 0 });
    expect(await unknown.claim({ owner: 'x', durationMs: CLAIM_MS })).toEqual({ kind: 'unregistered' });
  });
}

function describeWatermark(makeFixture: () => Promise<RegistryFixture>): void {
  it('starts a group at the beginning, with its topics', async () => {
    const { registry, floorMs } = await makeFixture();
    const claim = await registry.claim({ owner: 'x', durationMs: CLAIM_MS });
    expect(claim).toMatchObject({ kind: 'claimed', state: 'bootstrapping', watermarkMs: 0, floorMs });
    expect(claim.kind === 'claimed' ? [...claim.topics].sort() : null).toEqual(['a-events', 'b-events']);
  });

  it('moves the watermark up and never down', async () => {
    const { registry, floorMs } = await makeFixture();
    await registry.advance({ toMs: floorMs - 10, floorMs });
    await registry.advance({ toMs: floorMs - 20, floorMs });
    const claim = await registry.claim({ owner: 'x', durationMs: CLAIM_MS });
    expect(claim).toMatchObject({ watermarkMs: floorMs - 10, state: 'bootstrapping' });
  });

  it('moves nothing for whoever claimed before the floor was raised', async () => {
    const { registry, floorMs } = await makeFixture();
    await registry.advance({ toMs: floorMs + 1, floorMs: floorMs - 1 });
    expect(await registry.standing()).toMatchObject({ state: 'bootstrapping', watermarkMs: 0 });
  });

  it('makes the group live once the watermark has passed its floor', async () => {
    const { registry, floorMs } = await makeFixture();
    await registry.advance({ toMs: floorMs + 1, floorMs });
    expect(await registry.claim({ owner: 'x', durationMs: CLAIM_MS })).toMatchObject({ state: 'live' });
  });
}
