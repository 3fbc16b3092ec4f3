import { PublishRate } from './publish-rate.js';
import type { RelayCounts } from './snapshot.js';

export type Counts = { -readonly [Name in keyof RelayCounts]: RelayCounts[Name] };

/** What a shard has done since the process started, and when it last did it (null: never). */
export class Progress {
  readonly counts: Counts = {
    captured: 0,
    claimed: 0,
    published: 0,
    attempts: 0,
    sendFailures: 0,
    markedPublished: 0,
    markedFailed: 0,
    markedDead: 0,
    refused: 0,
    missing: 0,
    sweeps: 0,
    repairs: 0,
    takeOvers: 0,
    fenced: 0,
    checkpointsSaved: 0,
    databaseFailures: 0,
  };
  readonly repairsByReason = new Map<string, number>();
  readonly publishRate = new PublishRate();
  /** Of the batch that was read last. */
  batchLagMs: number | null = null;
  /** Requests for the lease without an answer, since the last one that had one. */
  leaseFailuresInARow = 0;
  leaseAnsweredAtMs: number | null = null;
  /** A session got ahead: something was read, marked or saved that was not before. */
  aheadAtMs: number | null = null;
  readAtMs: number | null = null;
  capturedAtMs: number | null = null;
  markedAtMs: number | null = null;
  checkpointAtMs: number | null = null;
  /** Since when there have been rows in memory without a pause. */
  rowsSinceMs: number | null = null;

  /** What a session before did says nothing about the one that begins. */
  beginSession(nowMs: number): void {
    this.aheadAtMs = nowMs;
    this.readAtMs = null;
    this.capturedAtMs = null;
    this.batchLagMs = null;
    this.markedAtMs = null;
    this.checkpointAtMs = null;
    this.rowsSinceMs = null;
  }

  /** What was read since the last batch is unknown: the cluster may have gone on for as long. */
  lagMs(nowMs: number): number | null {
    return this.batchLagMs === null || this.readAtMs === null ? null : this.batchLagMs + (nowMs - this.readAtMs);
  }

  repaired(reason: string): void {
    this.counts.repairs += 1;
    this.repairsByReason.set(reason, (this.repairsByReason.get(reason) ?? 0) + 1);
  }

  /** Told of every change of the number of rows in memory. */
  rowsInMemory(rows: number, nowMs: number): void {
    this.rowsSinceMs = rows === 0 ? null : (this.rowsSinceMs ?? nowMs);
  }

  /** How long rows have been in memory with none of them marked; null while there are none. */
  unmarkedForMs(nowMs: number): number | null {
    return this.rowsSinceMs === null ? null : nowMs - Math.max(this.rowsSinceMs, this.markedAtMs ?? -Infinity);
  }
}
