import type { ConsumerPorts } from '@nightporter/consumer';
import type { MemorySession } from '../memory/index.js';
import type { RelayPorts } from '@nightporter/relay';

/**
 * Takes one rule of the protocol away, from outside: the engines run unchanged over ports that no longer do, or no longer
 * tell, one thing. A simulation that does not notice proves nothing.
 */
export interface Sabotage {
  readonly name: string;
  /** The rule that is gone. */
  readonly removes: string;
  readonly relay?: (ports: RelayPorts) => RelayPorts;
  readonly consumer?: (ports: ConsumerPorts<MemorySession>) => ConsumerPorts<MemorySession>;
}

export const SABOTAGES: readonly Sabotage[] = [];
