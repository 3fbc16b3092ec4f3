export { RELAY_DEFAULTS, relayOptions, type RelayOptions, type Shard } from './options.js';
export * from './ports.js';
export { createRelay, type Relay, type RelayPorts } from './relay.js';
export type { RelayCounts, RelaySnapshot, ShardSnapshot, ShardState } from './snapshot.js';
