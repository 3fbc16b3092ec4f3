export { RELAY_DEFAULTS, relayOptions, shardsOf, type RelayOptions, type Shard } from './options.js';
export type { OutboxActionOutcome, OutboxActionRequest, OutboxActions } from './outbox-actions.js';
export * from './ports.js';
export * from './relay-events.js';
export { createRelay, type Relay, type RelayPorts } from './relay.js';
export type {
  OutboxSnapshot,
  RelayCounts,
  RelaySnapshot,
  ShardSnapshot,
  ShardState,
  SharingSnapshot,
} from './snapshot.js';
