import type { OutboxRow } from '@nightporter/contracts';
import type { Epoch, Pause } from '@nightporter/protocol';
import type { PublishError, ShardId } from './ports.js';
/** Told what happens, for logs and metrics. Must not throw and must not wait. */
export type RelayObserver = (event: RelayEvent) => void;

export type RelayEvent =
  | { readonly kind: 'lease-acquired'; readonly shard: ShardId; readonly epoch: Epoch }
  | { readonly kind: 'lease-lost'; readonly shard: ShardId; readonly epoch: Epoch; readonly reason: string }
  /** How many live, and how many shards this one should have. */
  | { readonly kind: 'share-changed'; readonly instances: number; readonly share: number }
  /** Given back because other instances have less than their share. */
  | { readonly kind: 'shard-given-back'; readonly shard: ShardId }
  /** Told when it begins: no lease is asked for, or kept, while another division of the slots is served. */
  | { readonly kind: 'other-shard-map'; readonly reason: string }
  | { readonly kind: 'capture-opened'; readonly shard: ShardId; readonly resumed: boolean }
  | { readonly kind: 'capture-lost'; readonly shard: ShardId; readonly error: unknown }
  | { readonly kind: 'repaired'; readonly shard: ShardId; readonly reason: string; readonly rows: number }
  | { readonly kind: 'published'; readonly row: OutboxRow; readonly messageId: string; readonly sendMs: number }
  | { readonly kind: 'send-failed'; readonly row: OutboxRow; readonly error: PublishError; readonly retryInMs: number }
  | {
      readonly kind: 'marked';
      readonly published: number;
      readonly failed: number;
      readonly refused: number;
      readonly missing: number;
    }
  | { readonly kind: 'claims-taken-back'; readonly shard: ShardId; readonly rows: number }
  | { readonly kind: 'pause-changed'; readonly shard: ShardId; readonly pause: Pause }
  | { readonly kind: 'dead'; readonly row: OutboxRow; readonly error: string }
  | { readonly kind: 'checkpoint-saved'; readonly shard: ShardId; readonly seq: number }
  | { readonly kind: 'database-unavailable'; readonly operation: string; readonly error: unknown };
