import { search, type Deployment, type EventSummary } from '@nightporter/ledger';
import { Command } from 'commander';
import { setTimeout as delay } from 'node:timers/promises';
import type { Cli } from '../cli.js';
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
const PAGE = 200;

export function tailCommand(cli: Cli): Command {
  const description =
    'Prints events as they are committed, a line each, until it is ended. A look at what goes on: it may leave out events while more than 200 come at once.';
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
      const startedMs = Date.now();
      return connected(flags, ({ deployment }) => follow(cli, { deployment, flags, startedMs }));
    });
}

async function follow(
  { io }: Cli,
  {
    deployment,
    flags,
    startedMs,
  }: { readonly deployment: Deployment; readonly flags: Flags; readonly startedMs: number },
): Promise<void> {
  const { limit = Number.POSITIVE_INFINITY } = flags;
  let seen = new Map<string, number>();
  let printed = 0;
  while (!io.signal.aborted && printed < limit) {
    const fromMs = Math.max(startedMs, Date.now() - OVERLAP_MS);
    const fresh = (await newest(deployment, flags, fromMs))
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

/** Oldest first. */
async function newest(
  deployment: Deployment,
  { topic, type }: Flags,
  fromMs: number,
): Promise<readonly EventSummary[]> {
  const { events } = await search(deployment, {
    from: new Date(fromMs),
    limit: PAGE,
    ...(topic === undefined ? {} : { topic }),
    ...(type === undefined ? {} : { eventType: type }),
  });
  return [...events].reverse();
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
