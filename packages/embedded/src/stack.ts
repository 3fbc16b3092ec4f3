import { takeDataFolder } from './data-folder.js';
import { startMongoIn, type MongoOptions, type MongoServer } from './mongo/start-mongo.js';
import { startRocketMqIn, type RocketMqOptions, type RocketMqServer } from './rocketmq/start-rocketmq.js';

export interface StackOptions extends MongoOptions, RocketMqOptions {}

/** A MongoDB and a RocketMQ. */
export interface Stack {
  readonly mongodb: MongoServer;
  readonly rocketmq: RocketMqServer;
  /** Data and logs of both. */
  readonly dataFolder: string;
  /** Stops both, and removes their data unless a data folder was given. May be called again. */
  stop(): Promise<void>;
}

/** Starts both servers at the same time; if one cannot start, the other is stopped again and the first one's error thrown. */
export async function startStack(options: StackOptions = {}): Promise<Stack> {
  const folder = takeDataFolder(options.dataFolder);
  const shared = () => ({ ...folder, release: () => undefined });
  const [mongodb, rocketmq] = await Promise.allSettled([
    startMongoIn(options, shared),
    startRocketMqIn(options, shared),
  ]);
  if (mongodb.status === 'fulfilled' && rocketmq.status === 'fulfilled') {
    const servers = [mongodb.value, rocketmq.value];
    let stopped: Promise<void> | undefined;
    const stop = async () => {
      await Promise.all(servers.map((server) => server.stop()));
      folder.release();
    };
    return {
      mongodb: mongodb.value,
      rocketmq: rocketmq.value,
      dataFolder: folder.path,
      stop: () => (stopped ??= stop()),
    };
  }
  const results = [mongodb, rocketmq];
  await Promise.all(results.map((result) => (result.status === 'fulfilled' ? result.value.stop() : Promise.resolve())));
  folder.release();
  throw results.find((result) => result.status === 'rejected')?.reason;
}
