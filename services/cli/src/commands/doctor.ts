import { brokerNotAsked, doctor, examineBroker, type Finding } from '@nightporter/ledger';
import { Command, Option } from 'commander';
import { brokerOf, withBroker, type BrokerFlags } from '../broker.js';
import { EXIT, type Cli } from '../cli.js';
import { connected, names, withConnection, type ConnectionFlags } from '../connection.js';
import { answer, count, table, whole } from '../output.js';

interface Flags extends ConnectionFlags, BrokerFlags {
  readonly json: boolean;
  readonly topics?: readonly string[];
  readonly brokerRetentionHours: number;
  readonly handlerMs: number;
  readonly transactionMs: number;
}

const TUNED_MS = { min: 1, max: 86_400_000 } as const;

export function doctorCommand(cli: Cli): Command {
  const description =
    'Examines a deployment: server, replica set, indexes, clocks, oplog, relay, outboxes, groups, and topics and groups at the broker. Each finding comes with what mends it.';
  return withBroker(withConnection(new Command('doctor').description(description)))
    .addOption(
      new Option('--broker-retention-hours <hours>', 'how long the broker keeps messages, as the workers are told')
        .env('BROKER_RETENTION_HOURS')
        .argParser(whole({ min: 1, max: 87_600 }))
        .default(72),
    )
    .option('--handler-ms <number>', 'longest that a handler may take, as its worker has it', whole(TUNED_MS), 30_000)
    .option('--transaction-ms <number>', 'how long a worker adds to one transaction', whole(TUNED_MS), 5_000)
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
        const broker = brokerOf(flags);
        const brokerRetentionMs = flags.brokerRetentionHours * 3_600_000;
        const { handlerMs, topics, transactionMs } = flags;
        const found = await doctor(deployment, client, { brokerRetentionMs, handlerMs, transactionMs });
        const atBroker =
          broker === null
            ? [brokerNotAsked('no --rocketmq-endpoints')]
            : await examineBroker(broker, { registered: found.registered, topics });
        const findings = [...found.findings, ...atBroker];
        answer(cli, flags, findings, told);
        if (findings.some(({ severity }) => severity !== 'note')) cli.exitCode = EXIT.no;
      }),
    );
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
