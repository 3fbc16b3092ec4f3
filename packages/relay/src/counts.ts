import type { RelayCounts } from './snapshot.js';

export type Counts = { -readonly [Name in keyof RelayCounts]: RelayCounts[Name] };

/** What a shard has done since the process started, and when it last did it (null: never). */
export class Progress {
  readonly counts: Counts = {
    captured: 0,
    claimed: 0,
    published: 0,
    sendFailures: 0,
    markedPublished: 0,
    markedFailed: 0,
    markedDead: 0,
    refused: 0,
    missing: 0,
    sweeps: 0,
    repairs: 0,
    checkpointsSaved: 0,
    databaseFailures: 0,
  };
  readAtMs: number | null = null;
  capturedAtMs: number | null = null;
  markedAtMs: number | null = null;
  checkpointAtMs: number | null = null;
}
