import { startStack, type Stack } from '@nightporter/embedded';
import { Fleet, type FleetOptions } from './fleet.js';
import { GROUPS, READS, TOPICS } from './shop.js';
import type { Surroundings } from './surroundings.js';

/** MongoDB, with `parameters` of its server, and a RocketMQ of our own with the topics and groups of the shop. */
export async function launchStack(
  { atEnd, fail, progress }: Surroundings,
  parameters: Readonly<Record<string, string>> = {},
): Promise<Stack> {
  progress('starting MongoDB and RocketMQ');
  // Faults are provoked at the broker, so it must be one of ours; the database is not killed, and need not pay for surviving that.
  const starting = startStack({
    progress,
    environment: { ...process.env, ROCKETMQ_ENDPOINTS: undefined },
    syncOnCommit: false,
    parameters,
    topics: Object.values(TOPICS).map((name) => ({ name })),
    groups: GROUPS.map((name) => ({ name, topics: [...READS[name]] })),
    onUnexpectedExit: fail,
  });
  atEnd('MongoDB and RocketMQ', async () => {
    await (await starting).stop();
  });
  return starting;
}

type Launch = Omit<FleetOptions, 'mongodbUri' | 'rocketmqEndpoints' | 'signal' | 'onUnexpectedExit'> & {
  readonly stack: Stack;
};

/** Every service of the shop, ready. */
export async function launchFleet(
  { stack, ...options }: Launch,
  { atEnd, atOnce, fail, progress, signal }: Surroundings,
): Promise<Fleet> {
  const { mongodb, rocketmq } = stack;
  const servers = { mongodbUri: mongodb.uri, rocketmqEndpoints: rocketmq.endpoints };
  const fleet = new Fleet({ ...options, ...servers, signal, onUnexpectedExit: fail });
  atEnd('the services', () => fleet.stop());
  atOnce(() => {
    fleet.killNow();
  });
  progress('starting the services');
  await fleet.start();
  return fleet;
}
