import { CONSUMER_COLLECTIONS, OUTBOX_COLLECTIONS } from '@nightporter/mongo';
import type { MongoClient } from 'mongodb';
import { setTimeout as delay } from 'node:timers/promises';
import { loadLine, loadView, type LoadSample } from './live-text.js';
import type { DemoOptions } from './options.js';
import { GROUPS, PRODUCERS, type Databases, type Producer } from './shop.js';

export interface LoadWatch {
  readonly client: MongoClient;
  readonly databases: Databases;
  readonly options: DemoOptions;
  readonly surroundings: { readonly progress: (line: string) => void; readonly signal: AbortSignal };
  /** Orders that are done with. */
  readonly placed: () => number;
}

const EVERY_MS = 1_000;

/** Shows, once a second, how far everything has come: in place on a terminal, as one line elsewhere. */
export function watchLoad(watch: LoadWatch): { end(): Promise<void> } {
  const ending = new AbortController();
  const signal = AbortSignal.any([watch.surroundings.signal, ending.signal]);
  const running = show(watch, signal);
  // A look that fails must not end the load: whoever waits for the end hears of it.
  running.catch(() => undefined);
  return {
    end: async () => {
      ending.abort();
      await running;
    },
  };
}

async function show(watch: LoadWatch, signal: AbortSignal): Promise<void> {
  const { options, surroundings } = watch;
  const total = options.orders;
  const screen = process.stderr.isTTY ? new Screen() : null;
  let before: LoadSample | null = null;
  while (!signal.aborted) {
    const sample = await look(watch);
    if (screen === null) surroundings.progress(loadLine(sample, before, total));
    else screen.draw(loadView(sample, before, total));
    before = sample;
    await untilNext(signal);
  }
}

async function untilNext(signal: AbortSignal): Promise<void> {
  try {
    await delay(EVERY_MS, undefined, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Counts that a server keeps, and rows that an index has few of: to look costs next to nothing. */
async function look({ client, databases, placed }: LoadWatch): Promise<LoadSample> {
  const outboxOf = (producer: Producer) => client.db(databases[producer]).collection(OUTBOX_COLLECTIONS.outbox);
  const [committed, unpublished, settled] = await Promise.all([
    Promise.all(PRODUCERS.map((producer) => outboxOf(producer).estimatedDocumentCount())),
    Promise.all(PRODUCERS.map((producer) => outboxOf(producer).countDocuments({ unsettled: true }))),
    Promise.all(
      GROUPS.map((group) =>
        client.db(databases[group]).collection(CONSUMER_COLLECTIONS.inbox).estimatedDocumentCount(),
      ),
    ),
  ]);
  const producers = PRODUCERS.map((name, index) => ({
    name,
    committed: committed[index] ?? 0,
    unpublished: unpublished[index] ?? 0,
  }));
  const groups = GROUPS.map((name, index) => ({ name, settled: settled[index] ?? 0 }));
  return { atMs: performance.now(), placed: placed(), producers, groups };
}

/** A few lines that are written over again and again. */
class Screen {
  #lines = 0;

  draw(lines: readonly string[]): void {
    const up = this.#lines === 0 ? '' : `\u001b[${this.#lines}A`;
    process.stderr.write(`${up}${lines.map((line) => `\u001b[2K${line}\n`).join('')}`);
    this.#lines = lines.length;
  }
}
