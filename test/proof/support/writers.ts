import { createCatalogue, defaultEventKey, defineEvent, type OutboxDocument } from '@nightporter/contracts';
import { createOutbox } from '@nightporter/outbox';
import { eventId } from '@nightporter/protocol';
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { outboxDocument } from '../../conformance/mongo-samples.js';
import type { RelayWorld } from './relay-world.js';

const WRITERS = 8;

/** Writes events the way a service does: each in a business transaction of its own, told once it has committed. */
export interface Writer {
  /** Writes so many more, spread over the aggregates; resolves once each is committed or has failed. */
  write(count: number): Promise<void>;
  /** Payloads of what the outbox has promised to keep. */
  readonly committed: ReadonlySet<number>;
  /** What it refused, or could not say. */
  readonly failures: readonly unknown[];
}

export function createWriter(world: RelayWorld, { aggregates }: { aggregates: number }): Writer {
  const [topic = ''] = world.topics;
  const noted = defineEvent({ type: 'Noted', version: 1, aggregateType: 'note', topic, schema: z.unknown() });
  const { client, database } = world;
  const outbox = createOutbox({ client, database, source: 'proof', catalogue: createCatalogue([noted]) });
  const committed = new Set<number>();
  const failures: unknown[] = [];
  let next = 0;
  const writeOne = async (number: number): Promise<void> => {
    const event = { aggregateType: 'note', aggregateId: `a${number % aggregates}`, eventType: 'Noted' };
    try {
      await outbox.transaction(({ emit }) => emit({ ...event, payload: { number } }));
      committed.add(number);
    } catch (error) {
      failures.push(error);
    }
  };
  return {
    committed,
    failures,
    write: async (count) => {
      const end = next + count;
      const writer = async (): Promise<void> => {
        while (next < end) await writeOne(next++);
      };
      await Promise.all(Array.from({ length: WRITERS }, writer));
    },
  };
}

const INSERTED_AT_ONCE = 1_000;

export interface Backlog {
  readonly topic: string;
  readonly events: number;
  readonly aggregates: number;
  /** Tells the aggregates of one backlog from those of another. */
  readonly prefix?: string;
  /** Of the payload. */
  readonly textLength?: number;
}

/** Rows as `emit()` writes them, in bulk: a backlog that is older than every relay. */
export async function writeBacklog(world: RelayWorld, backlog: Backlog): Promise<void> {
  for (let from = 0; from < backlog.events; from += INSERTED_AT_ONCE) {
    const count = Math.min(INSERTED_AT_ONCE, backlog.events - from);
    const documents = Array.from({ length: count }, (_, index) => rowOf(backlog, from + index));
    await world.rows.insertMany(documents, { ordered: false });
  }
}

function rowOf({ topic, aggregates, prefix = 'b', textLength = 200 }: Backlog, number: number): OutboxDocument {
  const identity = { source: 'proof', aggregateType: 'note', aggregateId: `${prefix}${number % aggregates}` };
  const version = Math.floor(number / aggregates) + 1;
  return outboxDocument(
    { ...identity, version, id: eventId(randomUUID()), eventKey: defaultEventKey(identity) },
    { eventType: 'Noted', topic, headers: {}, payload: { number, text: 'x'.repeat(textLength) } },
  );
}
