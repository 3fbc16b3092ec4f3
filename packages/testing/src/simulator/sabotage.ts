import type { ConsumerPorts } from '@nightporter/consumer';
import type { MemorySession } from '../memory/index.js';
import type { RelayPorts } from '@nightporter/relay';
import type { Cluster } from './cluster.js';
import { CONSUMER_SABOTAGES } from './sabotage-consumer.js';
import { LEDGER_SABOTAGES } from './sabotage-ledger.js';
import { RELAY_SABOTAGES } from './sabotage-relay.js';

/**
 * Takes one rule of the protocol away, from outside: the engines run unchanged over ports that no longer do, or no longer
 * tell, one thing. A simulation that does not notice proves nothing.
 */
export interface Sabotage {
  readonly name: string;
  /** The rule that is gone. */
  readonly removes: string;
  /**
   * What a violation's rule may begin with, so that it speaks of this sabotage: without the rule that is gone, at least one of these
   * must be broken. Any other violation would be a coincidence, and proves nothing.
   */
  readonly breaks: readonly [string, ...string[]];
  /** Applied at every start of a relay process. */
  readonly relay?: (ports: RelayPorts, cluster: Cluster) => RelayPorts;
  /** Applied at every start of a worker process. */
  readonly consumer?: (ports: ConsumerPorts<MemorySession>, cluster: Cluster) => ConsumerPorts<MemorySession>;
}

export const SABOTAGES: readonly Sabotage[] = [...RELAY_SABOTAGES, ...CONSUMER_SABOTAGES, ...LEDGER_SABOTAGES];
