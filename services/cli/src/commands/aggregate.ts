import { aggregateHistory, type AggregateHistory } from '@nightporter/ledger';
import { aggregateKey, type AggregateKey } from '@nightporter/protocol';
import { Command, InvalidArgumentError } from 'commander';
import { EXIT, type Cli } from '../cli.js';
import { connected, withConnection, type ConnectionFlags } from '../connection.js';
import { answer, at, notes, section, table, whole } from '../output.js';

interface Flags extends ConnectionFlags {
  readonly json: boolean;
  readonly after: number;
  readonly limit: number;
}

export function aggregateCommand(cli: Cli): Command {
  return withConnection(
    new Command('aggregate')
      .description('Tells every version of one aggregate, and what each group has made of it.')
      .argument(
        '<aggregate>',
        'source/type/id, each part percent-encoded where it holds a slash or a space',
        aggregate,
      ),
  )
    .option('--after <version>', 'only versions above it', whole({ min: 0, max: 999_999_999 }), 0)
    .option('--limit <number>', 'versions at most', whole({ min: 1, max: 500 }), 100)
    .option('--json', 'print one line of JSON', false)
    .addHelpText(
      'after',
      `
Exit codes: 0 found, 1 nothing was ever committed for it, 2 wrong use, 3 it could not be found out.

Examples:
  nightporter aggregate orders/order/4711
  nightporter aggregate orders/order/4711 --after 100 --json
`,
    )
    .action((key: AggregateKey, flags: Flags) =>
      connected(flags, async ({ deployment }) => {
        const found = await aggregateHistory(deployment, key, { afterVersion: flags.after, limit: flags.limit });
        answer(cli, flags, found, told);
        if (found.producer === null) cli.exitCode = EXIT.no;
      }),
    );
}

/** A part that has no special character may be given as it is. */
export function aggregate(text: string): AggregateKey {
  const parts = text.split('/');
  const [source = '', aggregateType = '', aggregateId = ''] = parts.map(decoded);
  if (parts.length !== 3 || source === '' || aggregateType === '' || aggregateId === '')
    throw new InvalidArgumentError('expected source/type/id, such as orders/order/4711');
  return aggregateKey({ source, aggregateType, aggregateId });
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new InvalidArgumentError(`${part} is not percent-encoded; a % stands as %25`);
  }
}

function told(found: AggregateHistory): string {
  const { aggregate: key, entries, headVersion, next, notKnown, positions, producer } = found;
  if (producer === null) return `Nothing was ever committed for ${key}.\n${notes(notKnown)}`;
  const groups = Object.keys(positions);
  const rows = entries.map(({ event, groups: outcomes, version }) => [
    `${version}`,
    event?.eventType ?? '(not in the ledger any more)',
    event?.eventId ?? '-',
    event?.status ?? '-',
    at(event?.publishedAt ?? null),
    ...groups.map((group) => outcomes[group] ?? '-'),
  ]);
  const standing = groups.map((group) => {
    const position = positions[group] ?? null;
    return `${group} ${position === null ? 'has nothing of it' : `is at ${position.version}, ${position.state}`}`;
  });
  return [
    `${key} in ${producer}: ${headVersion} events were committed.\n`,
    standing.length === 0 ? '' : `${standing.join('; ')}.\n`,
    section('Versions', table(['version', 'type', 'event', 'status', 'published at', ...groups], rows)),
    next === null ? '' : `more: --after ${next}\n`,
    notes(notKnown),
  ].join('');
}
