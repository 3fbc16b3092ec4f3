import { startMongo, type MongoOptions, type MongoServer } from '@nightporter/embedded';

/** A server for one test to kill, whatever MONGODB_URI says. */
export function startOwnMongo(options: MongoOptions = {}): Promise<MongoServer> {
  return startMongo({ ...options, environment: { ...process.env, MONGODB_URI: '' } });
}
