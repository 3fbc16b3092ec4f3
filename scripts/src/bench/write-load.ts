import type { Catalogue } from '@nightporter/contracts';
import { createOutbox } from '@nightporter/outbox';
import type { MongoClient } from 'mongodb';

/** One business write that has its answer, in milliseconds of `performance.now()`. */
export interface WriteSample {
  readonly startedMs: number;
  readonly endedMs: number;
}

export interface WriteLoadRequest {
  readonly client: MongoClient;
  readonly database: string;
  readonly catalogue: Catalogue;
  readonly event: { readonly aggregateType: string; readonly eventType: string };
  readonly writers: number;
}

/** Writers that each commit one business transaction after another: a document of the business and its event. */
export class WriteLoad {
  readonly samples: WriteSample[] = [];
  /** Times that a transaction had to be run again: a conflict, or a server that did not answer. */
  repeated = 0;
  failed = 0;
  #isStopped = false;
  #number = 0;
  readonly #ended: Promise<unknown>;

  constructor(request: WriteLoadRequest) {
    this.#ended = Promise.all(Array.from({ length: request.writers }, (_, writer) => this.#write(request, writer)));
  }

  /** Resolves once every write has its answer. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#ended;
  }

  async #write({ client, database, catalogue, event }: WriteLoadRequest, writer: number): Promise<void> {
    const outbox = createOutbox({ client, database, source: 'bench', catalogue });
    const documents = client.db(database).collection<{ _id: number; writer: number }>('documents');
    while (!this.#isStopped) {
      const number = this.#number;
      this.#number += 1;
      let runs = 0;
      const startedMs = performance.now();
      try {
        await outbox.transaction(async ({ session, emit }) => {
          runs += 1;
          await documents.insertOne({ _id: number, writer }, { session });
          await emit({ ...event, aggregateId: `w${writer}-${number % 100}`, payload: { number } });
        });
        this.samples.push({ startedMs, endedMs: performance.now() });
      } catch {
        // Counted and shown: whether any write fails is what is measured here.
        this.failed += 1;
      }
      this.repeated += Math.max(0, runs - 1);
    }
  }
}
