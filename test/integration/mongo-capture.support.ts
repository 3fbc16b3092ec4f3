import type { MongoServer } from '@nightporter/embedded';
import { connectMongo, createRelayStores, ensureOutboxCollections } from '@nightporter/mongo';
import { ALL_SLOTS, namespace, type EventId, type Namespace, type NightporterError } from '@nightporter/protocol';
import type { Capture, CaptureBatch, CaptureStream } from '@nightporter/relay';
import type { MongoClient } from 'mongodb';
import { afterEach, expect } from 'vitest';
import type { SharedDatabase } from '../conformance/mongo-database.js';
import { commitSamples, databaseOf } from '../conformance/mongo-samples.js';
import { startOwnMongo } from './mongo-own-server.js';

/** So that a test ends that waits for rows which never come. */
export const READS_MAX = 60;

/** An outbox, what captures from it, and what that has warned of. */
export interface Outbox {
  readonly client: MongoClient;
  readonly outbox: Namespace;
  readonly capture: Capture;
  readonly warnings: NightporterError[];
}

/** What the tests of a file capture from, and with. */
export interface Captures {
  /** What a test has opened; closed after it, the last first. */
  readonly open: { close(): Promise<unknown> }[];
  /** An outbox of its own on the server that all tests share. */
  readonly prepareOutbox: () => Promise<Namespace>;
  /** An outbox on a server that the test may kill. */
  readonly outboxOnOwnServer: (
    options?: Parameters<typeof startOwnMongo>[0],
  ) => Promise<Outbox & { readonly server: MongoServer }>;
  /** A stream from now on. */
  readonly openStream: (capture: Capture) => Promise<CaptureStream>;
}

/** For the tests of a file; called outside of them, since it closes after each what that has opened. */
export function captures(shared: SharedDatabase): Captures {
  const open: Captures['open'] = [];
  afterEach(async () => {
    for (const resource of open.splice(0).reverse()) await resource.close();
  });
  return {
    open,
    async prepareOutbox() {
      const outbox = namespace(`${shared.database('orders')}.outbox`);
      await ensureOutboxCollections(shared.client(), databaseOf(outbox));
      return outbox;
    },
    async outboxOnOwnServer(options = {}) {
      const server = await startOwnMongo(options);
      const client = await connectMongo({ uri: server.uri });
      open.push({ close: () => server.stop() }, client);
      const outbox = namespace('orders.outbox');
      await ensureOutboxCollections(client, 'orders');
      return { server, client, outbox, ...stores(client, outbox) };
    },
    async openStream(capture) {
      const stream = await capture.open({ after: null, slots: ALL_SLOTS });
      open.push(stream);
      return stream;
    },
  };
}

export function stores(client: MongoClient, outbox: Namespace): { capture: Capture; warnings: NightporterError[] } {
  const warnings: NightporterError[] = [];
  const onWarning = (warning: NightporterError): void => {
    warnings.push(warning);
  };
  return { ...createRelayStores({ client, database: 'unused', namespaces: [outbox], onWarning }), warnings };
}

/** Each row is of an aggregate of its own, so that a dropped outbox does not matter. */
export async function commit({ client, outbox }: Pick<Outbox, 'client' | 'outbox'>, count: number): Promise<EventId[]> {
  const samples = Array.from({ length: count }, () => ({ namespace: outbox, aggregateId: crypto.randomUUID() }));
  return commitSamples(client, samples);
}

/** What a read that was rejected has brought: nothing, and only an outage may reject it. */
export function unavailableBatch(error: unknown): undefined {
  expect(error).toMatchObject({ code: 'NP_STORE_UNAVAILABLE' });
}

/** Reads until `count` rows have come; fewer, where they do not come within the most reads. */
export async function readRows(
  stream: CaptureStream,
  count: number,
): Promise<{ rows: EventId[]; tokens: CaptureBatch['rows'][number]['token'][]; disturbed: boolean }> {
  const captured: CaptureBatch['rows'][number][] = [];
  let disturbed = false;
  for (let read = 0; read < READS_MAX && captured.length < count; read += 1) {
    const batch = await stream.read();
    captured.push(...batch.rows);
    disturbed ||= batch.disturbed;
  }
  return { rows: captured.map(({ row }) => row.eventId), tokens: captured.map(({ token }) => token), disturbed };
}

export async function readIds(stream: CaptureStream, count: number): Promise<EventId[]> {
  return (await readRows(stream, count)).rows;
}
