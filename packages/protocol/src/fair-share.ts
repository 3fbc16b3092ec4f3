export interface Sharing {
  /** How many shards there are. */
  readonly shards: number;
  /** Those that live, in any order; whoever asks counts itself, listed or not. */
  readonly instances: readonly string[];
  readonly self: string;
}

/**
 * How many shards an instance should have. The shares of instances that see the same list add up to the number of shards and differ by one
 * at most: those whose names sort first have the one more. Instances that see different lists may add up to more, or for a
 * while to less; leases decide who has what.
 */
export function fairShare({ shards, instances, self }: Sharing): number {
  const living = [...new Set([...instances, self])].sort();
  const rest = shards % living.length;
  return Math.floor(shards / living.length) + (living.indexOf(self) < rest ? 1 : 0);
}

export type ShareStep =
  /** Below its share: it may ask for so many free leases. */
  | { readonly kind: 'take'; readonly places: number }
  | { readonly kind: 'keep' }
  /** Above its share: others wait for so many of its shards. */
  | { readonly kind: 'give-back'; readonly surplus: number };

/** What an instance does about its share; null while it does not know it, and then it keeps what it has and asks for nothing. */
export function shareStep({ share, held }: { share: number | null; held: number }): ShareStep {
  if (share === null || share === held) return { kind: 'keep' };
  return share > held ? { kind: 'take', places: share - held } : { kind: 'give-back', surplus: held - share };
}
