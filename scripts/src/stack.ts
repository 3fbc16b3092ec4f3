import { startStack, type GroupRequest, type Stack, type StackOptions, type TopicRequest } from '@nightporter/embedded';
import { Command, InvalidArgumentError } from 'commander';

interface Flags {
  topics: TopicRequest[];
  groups: GroupRequest[];
  data?: string;
  oplogMaxEntries?: number;
  syncOnCommit: boolean;
}

const QUEUES_MAX = 1024;

await main();

/** Progress and errors go to standard error; standard output gets one line of JSON with the addresses, once everything is up. */
async function main(): Promise<void> {
  const flags = parseFlags();
  let stack: Stack | undefined;
  const end = (exitCode: number, why: string) => {
    note(why);
    const stopped = stack === undefined ? Promise.resolve() : stack.stop();
    stopped.then(
      () => process.exit(exitCode),
      (error: unknown) => {
        note(`could not be stopped: ${String(error)}`);
        process.exit(1);
      },
    );
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      end(0, `${signal}: stopping`);
    });
  }
  try {
    stack = await startStack(
      stackOptions(flags, (error) => {
        end(1, error.message);
      }),
    );
  } catch (error) {
    note(error instanceof Error ? error.message : String(error));
    process.exit(1);
  }
  process.stdout.write(`${JSON.stringify(addresses(stack))}\n`);
  note('ready; Ctrl-C stops both servers');
}

function parseFlags(): Flags {
  return new Command('stack')
    .description(
      'Keeps a MongoDB and a RocketMQ running on the loopback interface, and prints their addresses as one line of JSON.',
    )
    .option(
      '--topics <list>',
      'FIFO topics to create, as name:queues,… (queues: 1 to 1024, default 8)',
      parseTopics,
      [],
    )
    .option(
      '--groups <list>',
      'ordered consumer groups to create, as name:topic,… (the group reads what is sent to that topic from now on)',
      parseGroups,
      [],
    )
    .option('--data <folder>', 'keep data and logs in this folder (default: a temporary one, removed at the end)')
    .option(
      '--oplog-max-entries <number>',
      'events that the change streams of SecantusDB can go back (default 100,000)',
      parsePositive,
    )
    .option('--no-sync-on-commit', 'let SecantusDB lose the last commits when it is killed; faster')
    .parse()
    .opts<Flags>();
}

function stackOptions(flags: Flags, onUnexpectedExit: (error: Error) => void): StackOptions {
  return {
    progress: note,
    onUnexpectedExit,
    topics: flags.topics,
    groups: flags.groups,
    syncOnCommit: flags.syncOnCommit,
    ...(flags.data === undefined ? {} : { dataFolder: flags.data }),
    ...(flags.oplogMaxEntries === undefined ? {} : { oplogMaxEntries: flags.oplogMaxEntries }),
  };
}

function addresses({ mongodb, rocketmq, dataFolder }: Stack) {
  return {
    mongodbUri: mongodb.uri,
    engine: mongodb.engine,
    engineVersion: mongodb.version,
    rocketmqEndpoints: rocketmq.endpoints,
    rocketmqVersion: rocketmq.version,
    nameServer: rocketmq.nameServer,
    metricsPort: rocketmq.metricsPort,
    dataFolder,
  };
}

function parseTopics(list: string): TopicRequest[] {
  return list.split(',').map((item) => {
    const [name = '', queues] = item.split(':');
    if (name === '') throw new InvalidArgumentError(`"${item}" is not of the form name:queues.`);
    return queues === undefined ? { name } : { name, queues: parseQueues(queues) };
  });
}

function parseGroups(list: string): GroupRequest[] {
  return list.split(',').map((item) => {
    const [name = '', ...topics] = item.split(':');
    if (name === '') throw new InvalidArgumentError(`"${item}" is not of the form name:topic.`);
    return { name, topics };
  });
}

function parseQueues(text: string): number {
  const queues = parsePositive(text);
  if (queues > QUEUES_MAX) throw new InvalidArgumentError(`${text} queues are too many: 1 to ${QUEUES_MAX}.`);
  return queues;
}

function parsePositive(text: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 1)
    throw new InvalidArgumentError(`"${text}" is not a whole number from 1.`);
  return number;
}

function note(line: string): void {
  process.stderr.write(`stack: ${line}\n`);
}
