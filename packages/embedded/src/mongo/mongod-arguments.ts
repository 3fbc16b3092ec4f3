import type { MongoOptions } from './start-mongo.js';

/** What both engines know. Test commands bring fail points; the no-op keeps the resume token of an idle stream fresh. */
const PARAMETERS = { enableTestCommands: '1', periodicNoopIntervalSecs: '10' };

export const REPLICA_SET_NAME = 'nightporter';
const OPLOG_ENTRIES_DEFAULT = 100_000;

/** The command line for the engine, without what mongodb-memory-server adds itself (port, data path, address, storage engine). */
export function mongodArguments(options: MongoOptions, engine: { isSecantus: boolean }): string[] {
  const parameters = {
    ...PARAMETERS,
    ...(engine.isSecantus ? secantusParameters(options) : {}),
    ...options.parameters,
  };
  const flags = Object.entries(parameters).flatMap(([name, value]) => ['--setParameter', `${name}=${value}`]);
  return ['--replSet', REPLICA_SET_NAME, '--nounixsocket', ...flags];
}

export function replicaSetUri(port: number): string {
  return `mongodb://127.0.0.1:${port}/?replicaSet=${REPLICA_SET_NAME}`;
}

/** A real mongod would refuse to start with these. */
function secantusParameters(options: MongoOptions): Record<string, string> {
  return {
    exitOnStdinEof: 'true',
    syncOnCommit: String(options.syncOnCommit ?? true),
    oplogMaxEntries: String(options.oplogMaxEntries ?? OPLOG_ENTRIES_DEFAULT),
  };
}
