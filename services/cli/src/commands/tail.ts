import { SEARCH_LIMIT_MAX, search, type EventSummary, type SearchPage, type SearchRequest } from '@nightporter/ledger';
import { createDatabaseClock } from '@nightporter/mongo';
import { Command } from 'commander';
import { setTimeout as delay } from 'node:timers/promises';
import type { Cli, Io } from '../cli.js';
import { connected, withConnection, type ConnectionFlags } from '../connection.js';
import { at, whole } from '../output.js';

interface Flags extends ConnectionFlags {
  readonly json: boolean;
  readonly type?: string;
  readonly topic?: string;
  readonly everyMs: number;
  readonly limit?: number;
}

/** Events of the last few seconds may commit later than younger ones, so they are looked for again. */
const OVERLAP_MS = 15_000;

export function tailCommand(cli: Cli): Command {
  const description = 'Prints events as they are committed, a line each and each once, until it is ended.';
  return withConnection(new Command('tail').description(description))
    .option('--type <name>', 'only events of this type')
    .option('--topic <name>', 'only events of this topic')
    .option('--every-ms <number>', 'how often it looks', whole({ min: 100, max: 60_000 }), 1_000)
    .option('--limit <number>', 'ends after so many events', whole({ min: 1, max: 1_000_000 }))
    .option('--json', 'print a line of JSON for each', false)
    .addHelpText(
      'after',
      '\nExit codes: 0 ended, 2 wrong use, 3 it could not be found out.\n\nExample:\n  nightporter tail --topic orders-events\n',
    )
    .action((flags: Flags) => {
      // From when it was asked for: connecting takes a while.
      const askedAtMs = performance.now();
      return connected(flags, async ({ client, deployment }) => {
        const clock = createDatabaseClock(client);
        const now = (): Promise<Date> => clock.read();
        const startedMs = (await now()).getTime() - (performance.now() - askedAtMs);
        const page: FollowedEvents['page'] = (request) => search(deployment, request);
        await followEvents(cli.io, flags, { startedMs, now, page });
      });
    });
}

/** Events, and the clock that dates them: a terminal's may be off. */
interface FollowedEvents {
  readonly startedMs: number;
  readonly now: () => Promise<Date>;
  /** Newest first, a page at a time. */
  readonly page: (request: SearchRequest) => Promise<Pick<SearchPage, 'events' | 'cursor'>>;
}

/** Prints each event once that is created from the start on, until the limit is reached or the command is ended. */
export async function followEvents(
  io: Pick<Io, 'out' | 'signal'>,
  flags: Pick<Flags, 'everyMs' | 'json' | 'limit' | 'topic' | 'type'>,
  { now, page, startedMs }: FollowedEvents,
): Promise<void> {
  const { limit = Number.POSITIVE_INFINITY } = flags;
  let lookedMs = startedMs;
  let seen = new Map<string, number>();
  let printed = 0;
  while (!io.signal.aborted && printed < limit) {
    // Behind the look before, however long that took or is ago.
    const fromMs = Math.max(startedMs, lookedMs - OVERLAP_MS);
    lookedMs = (await now()).getTime();
    const fresh = (await since(fromMs, flags, page))
      .filter(({ eventId }) => !seen.has(eventId))
      .slice(0, limit - printed);
    for (const event of fresh) {
      io.out(flags.json ? `${JSON.stringify(event)}\n` : `${lineOf(event)}\n`);
      seen.set(event.eventId, event.createdAt.getTime());
    }
    printed += fresh.length;
    // What is older than the overlap cannot come again.
    seen = new Map([...seen].filter(([, createdMs]) => createdMs >= fromMs - OVERLAP_MS));
    if (printed < limit) await rest(flags.everyMs, io.signal);
  }
}

/** All of them, oldest first: what is committed while the pages are read is newer, or found by the next look. */
async function since(
  fromMs: number,
  { topic, type }: Pick<Flags, 'topic' | 'type'>,
  page: FollowedEvents['page'],
): Promise<readonly EventSummary[]> {
  const found: EventSummary[] = [];
  let cursor: string | null = null;
  do {
    const answered: Pick<SearchPage, 'events' | 'cursor'> = await page({
      from: new Date(fromMs),
      limit: SEARCH_LIMIT_MAX,
      ...(topic === undefined ? {} : { topic }),
      ...(type === undefined ? {} : { eventType: type }),
      ...(cursor === null ? {} : { cursor }),
    });
    found.push(...answered.events);
    ({ cursor } = answered);
  } while (cursor !== null);
  return found.reverse();
}

function lineOf({ aggregate, createdAt, eventId, eventType, status, topic, version }: EventSummary): string {
  return [at(createdAt), eventId, topic, `${aggregate} ${version}`, eventType, status].join('  ');
}

async function rest(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await delay(ms, undefined, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
