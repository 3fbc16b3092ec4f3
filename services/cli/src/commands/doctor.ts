import { doctor, type Examination, type Finding } from '@nightporter/ledger';
import { brokerGroup, groupId, isNightporterError } from '@nightporter/protocol';
import { preflightGroup, preflightTopic } from '@nightporter/rocketmq';
import { Command, Option } from 'commander';
import { EXIT, type Cli } from '../cli.js';
import { connected, names, withConnection, type ConnectionFlags } from '../connection.js';
import { answer, count, table, whole } from '../output.js';

interface Flags extends ConnectionFlags {
  readonly json: boolean;
  readonly rocketmqEndpoints?: string;
  readonly topics?: readonly string[];
  readonly brokerRetentionHours: number;
}

export function doctorCommand(cli: Cli): Command {
  const description =
    'Examines a deployment: server, replica set, indexes, clocks, oplog, relay, outboxes, groups, and topics and groups at the broker. Each finding comes with what mends it.';
  return withConnection(new Command('doctor').description(description))
    .addOption(
      new Option('--rocketmq-endpoints <host:port>', 'proxy of the broker; without it topics are not looked at').env(
        'ROCKETMQ_ENDPOINTS',
      ),
    )
    .addOption(
      new Option('--broker-retention-hours <hours>', 'how long the broker keeps messages, as the workers are told')
        .env('BROKER_RETENTION_HOURS')
        .argParser(whole({ min: 1, max: 87_600 }))
        .default(72),
    )
    .option('--topics <names>', 'topics to look at, by commas (default: those of the registered groups)', names)
    .option('--json', 'print one line of JSON', false)
    .addHelpText(
      'after',
      `
Exit codes: 0 nothing but notes, 1 warnings or errors, 2 wrong use, 3 it could not be found out.

Examples:
  nightporter doctor
  nightporter doctor --rocketmq-endpoints 127.0.0.1:8081 --topics orders-events,inventory-events
`,
    )
    .action((flags: Flags) =>
      connected(flags, async ({ client, deployment }) => {
        const brokerRetentionMs = flags.brokerRetentionHours * 3_600_000;
        const found = await doctor(deployment, client, { brokerRetentionMs });
        const findings = [...found.findings, ...(await atBroker(flags, found.registered))];
        answer(cli, flags, findings, told);
        if (findings.some(({ severity }) => severity !== 'note')) cli.exitCode = EXIT.no;
      }),
    );
}

/** The broker's own checks, those that relay and workers refuse to start upon. Their messages name the command that mends it. */
async function atBroker(
  { rocketmqEndpoints: endpoints, topics }: Flags,
  registered: Examination['registered'],
): Promise<readonly Finding[]> {
  if (endpoints === undefined || endpoints === '') {
    return [
      {
        severity: 'note',
        check: 'topic',
        text: 'Topics and groups at the broker were not looked at: no --rocketmq-endpoints.',
        mend: null,
      },
    ];
  }
  const wanted = topics ?? [...new Set(registered.flatMap((entry) => entry.topics))].sort();
  const findings: Finding[] = [];
  for (const topic of wanted) findings.push(...(await refusalOf(() => preflightTopic({ endpoints, topic }))));
  for (const { group, topics: read } of registered) {
    const name = brokerGroup(groupId(group));
    for (const topic of read) {
      const refused = await refusalOf(() => preflightGroup({ endpoints, topic, group: name }));
      // What is wrong with the group itself is so for each of its topics.
      findings.push(...refused.filter(({ text }) => !findings.some((known) => known.text === text)));
    }
  }
  return findings;
}

async function refusalOf(check: () => Promise<unknown>): Promise<readonly Finding[]> {
  try {
    await check();
    return [];
  } catch (error) {
    if (!isNightporterError(error)) throw error;
    const [text = error.message, mend] = error.message.split(/ (?:Create|Mend) it: /);
    return [{ severity: 'error', check: 'topic', text, mend: mend ?? `see ${error.code} in docs/errors.md` }];
  }
}

function told(findings: readonly Finding[]): string {
  const serious = findings.filter(({ severity }) => severity !== 'note').length;
  const rows = findings.map(({ check, mend, severity, text }) => [
    severity,
    check,
    mend === null ? text : `${text} → ${mend}`,
  ]);
  return `${serious === 0 ? 'Nothing is wrong.' : `${count(serious, 'finding')}.`}\n${rows.length === 0 ? '' : `\n${table(['severity', 'check', 'what, and what mends it'], rows)}`}`;
}
