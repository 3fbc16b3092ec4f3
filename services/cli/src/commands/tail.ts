import { followEvents, search, type EventSummary, type FollowedEvents } from '@nightporter/ledger';
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
        await printEvents(cli.io, flags, { startedMs, now, page });
      });
    });
}

/** Prints each event once that is created from the start on, until the limit is reached or the command is ended. */
export async function printEvents(
  io: Pick<Io, 'out' | 'signal'>,
  flags: Pick<Flags, 'everyMs' | 'json' | 'limit' | 'topic' | 'type'>,
  followed: Omit<FollowedEvents, 'filter'>,
): Promise<void> {
  const { everyMs, json, limit = Number.POSITIVE_INFINITY, topic, type } = flags;
  const filter = { ...(topic === undefined ? {} : { topic }), ...(type === undefined ? {} : { eventType: type }) };
  const follower = followEvents({ ...followed, filter });
  let printed = 0;
  while (!io.signal.aborted && printed < limit) {
    const fresh = (await follower.look()).slice(0, limit - printed);
    for (const event of fresh) io.out(json ? `${JSON.stringify(event)}\n` : `${lineOf(event)}\n`);
    printed += fresh.length;
    if (printed < limit) await rest(everyMs, io.signal);
  }
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
