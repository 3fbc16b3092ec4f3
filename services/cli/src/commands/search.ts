import { search, type SearchPage, type SearchRequest } from '@nightporter/ledger';
import { Command, Option } from 'commander';
import { EXIT, type Cli } from '../cli.js';
import { connected, withConnection, type ConnectionFlags } from '../connection.js';
import { answer, at, notes, table, time, whole } from '../output.js';

interface Flags extends ConnectionFlags {
  readonly json: boolean;
  readonly type?: string;
  readonly topic?: string;
  readonly aggregateType?: string;
  readonly aggregateId?: string;
  readonly status?: NonNullable<SearchRequest['status']>;
  readonly tenant?: string;
  readonly correlation?: string;
  readonly causation?: string;
  readonly from?: Date;
  readonly to?: Date;
  readonly limit: number;
  readonly cursor?: string;
  readonly timeoutSeconds: number;
}

export function searchCommand(cli: Cli): Command {
  return withConnection(
    new Command('search').description('Finds events by what is known of them, the newest first, a page at a time.'),
  )
    .option('--type <name>', 'type of the event')
    .option('--topic <name>', 'topic')
    .option('--aggregate-type <name>', 'type of the aggregate')
    .option('--aggregate-id <id>', 'id of the aggregate')
    .addOption(
      new Option('--status <status>', 'status in the outbox').choices([
        'PENDING',
        'PROCESSING',
        'PUBLISHED',
        'FAILED',
        'DEAD',
      ]),
    )
    .option('--tenant <id>', 'tenant')
    .option('--correlation <id>', 'correlation id: the whole story')
    .option('--causation <id>', 'causation id: what an event led to')
    .option('--from <time>', 'created at this time or later; bounds what is read', time)
    .option('--to <time>', 'created before this time; bounds what is read', time)
    .option('--limit <number>', 'events at most', whole({ min: 1, max: 200 }), 50)
    .option('--cursor <cursor>', 'goes on where a page ended')
    .option('--timeout-seconds <number>', 'how long one collection may take', whole({ min: 1, max: 600 }), 10)
    .option('--json', 'print one line of JSON', false)
    .addHelpText(
      'after',
      `
Exit codes: 0 found, 1 nothing found, 2 wrong use, 3 it could not be found out.

Examples:
  nightporter search --type OrderPaid --from 2026-11-30T12:00:00Z --to 2026-11-30T12:10:00Z
  nightporter search --correlation 01936f9e-7b1c-7cc1-a5c4-5a9c5f8f8d11
  nightporter search --status DEAD --json
`,
    )
    .action((flags: Flags) =>
      connected(flags, async ({ deployment }) => {
        const found = await search(deployment, requestOf(flags));
        answer(cli, flags, found, told);
        if (found.events.length === 0) cli.exitCode = EXIT.no;
      }),
    );
}

function requestOf(flags: Flags): SearchRequest {
  const { aggregateId, aggregateType, causation, correlation, cursor, from, limit, status, tenant, to, topic, type } =
    flags;
  return {
    limit,
    timeoutMs: flags.timeoutSeconds * 1_000,
    ...(type === undefined ? {} : { eventType: type }),
    ...(topic === undefined ? {} : { topic }),
    ...(aggregateType === undefined ? {} : { aggregateType }),
    ...(aggregateId === undefined ? {} : { aggregateId }),
    ...(status === undefined ? {} : { status }),
    ...(tenant === undefined ? {} : { tenantId: tenant }),
    ...(correlation === undefined ? {} : { correlationId: correlation }),
    ...(causation === undefined ? {} : { causationId: causation }),
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
    ...(cursor === undefined ? {} : { cursor }),
  };
}

function told({ cursor, events, notKnown }: SearchPage): string {
  const rows = events.map((event) => [
    at(event.createdAt),
    event.eventId,
    event.eventType,
    `${event.aggregate} ${event.version}`,
    event.status,
    `${event.producer}.${event.place}`,
  ]);
  return [
    rows.length === 0 ? 'No event found.\n' : table(['created at', 'event', 'type', 'aggregate', 'status', 'in'], rows),
    cursor === null ? '' : `more: --cursor ${cursor}\n`,
    notes(notKnown),
  ].join('');
}
