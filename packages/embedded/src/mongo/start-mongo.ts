import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { takeDataFolder, type DataFolder } from '../data-folder.js';
import { externalServer } from '../external-server.js';
import { surroundings, type EmbeddedOptions, type Surroundings } from '../options.js';
import { ownedServer } from '../owned-server.js';
import type { EmbeddedServer } from '../server.js';
import { isPortTaken, reservePorts, type PortReservation } from '../tools/ports.js';
import { findMongod } from './find-mongod.js';
import { Mongod } from './mongod.js';
import { mongodArguments, replicaSetUri } from './mongod-arguments.js';
import { identifyServer, type MongoEngine } from './replica-set.js';
import { discardSecantus, prepareSecantus } from './secantus.js';

const PORT_ATTEMPTS = 5;
const IDENTIFY_LIMIT_MS = 30_000;
/** A server that runs already answers at once or not at all. */
const EXTERNAL_LIMIT_MS = 5_000;
const URI_VARIABLE = 'MONGODB_URI';
/** Only compared with itself by mongodb-memory-server; the launcher answers --version with it. */
const SECANTUS_MONGOD_VERSION = '8.2.11';

export interface MongoOptions extends EmbeddedOptions {
  /** 'SecantusDB' passes over MONGODB_URI and any mongod. Default: the order of `startMongo`. */
  engine?: 'SecantusDB';
  /** How many events SecantusDB's change streams can go back; default 100,000. MongoDB sizes its oplog by bytes and ignores this. */
  oplogMaxEntries?: number;
  /** Default true: SecantusDB fsyncs each commit, so that `kill` loses nothing acknowledged. MongoDB journals anyway. */
  syncOnCommit?: boolean;
  /** Further `--setParameter` values that both engines know, such as ttlMonitorSleepSecs or periodicNoopIntervalSecs (default 10). */
  parameters?: Record<string, string>;
}

export interface MongoServer extends EmbeddedServer {
  readonly uri: string;
  /** Label every figure with it. */
  readonly engine: MongoEngine;
}

interface Engine {
  binary: string;
  version: string;
  isSecantus: boolean;
}

/**
 * A MongoDB replica set of one node on the loopback interface. In this order: MONGODB_URI as it is; a real mongod under
 * mongodb-memory-server (MONGOMS_SYSTEM_BINARY, the PATH, an earlier download, a download that is quick); else SecantusDB,
 * which speaks MongoDB's protocol.
 */
export function startMongo(options: MongoOptions = {}): Promise<MongoServer> {
  return startMongoIn(options, () => takeDataFolder(options.dataFolder));
}

/** The folder is taken only when a server of ours needs it. */
export async function startMongoIn(options: MongoOptions, takeFolder: () => DataFolder): Promise<MongoServer> {
  const at = surroundings(options);
  const uri = at.environment[URI_VARIABLE];
  if (uri !== undefined && uri !== '' && options.engine === undefined) return external(uri);
  const folder = takeFolder();
  try {
    return await startOwn({ options, at, folder });
  } catch (error) {
    folder.release();
    throw error;
  }
}

async function external(uri: string): Promise<MongoServer> {
  const { engine, version } = await identifyServer({ source: URI_VARIABLE, uri, limitMs: EXTERNAL_LIMIT_MS });
  return { ...externalServer({ variable: URI_VARIABLE, version }), uri, engine };
}

async function startOwn(request: {
  options: MongoOptions;
  at: Surroundings;
  folder: DataFolder;
}): Promise<MongoServer> {
  const { options, at } = request;
  const found = options.engine === 'SecantusDB' ? undefined : await findMongod(at);
  if (found !== undefined) return launch({ ...request, engine: { ...found, isSecantus: false } });
  const secantus = async () => ({
    binary: await prepareSecantus(at),
    version: SECANTUS_MONGOD_VERSION,
    isSecantus: true,
  });
  try {
    return await launch({ ...request, engine: await secantus() });
  } catch (error) {
    if (!(error instanceof Error) || !/ImportError|No such file/.test(error.message)) throw error;
    at.progress('SecantusDB: the copy in the cache does not run, making it anew');
    discardSecantus(at.cache);
    return launch({ ...request, engine: await secantus() });
  }
}

interface Launch {
  options: MongoOptions;
  at: Surroundings;
  folder: DataFolder;
  engine: Engine;
}

async function launch(request: Launch): Promise<MongoServer> {
  for (let attempt = 1; ; attempt += 1) {
    const ports = await reservePorts();
    try {
      return await launchOn(ports, request);
    } catch (error) {
      ports.release();
      if (attempt === PORT_ATTEMPTS || !isPortTaken(error)) throw error;
    }
  }
}

async function launchOn(ports: PortReservation, { options, at, folder, engine }: Launch): Promise<MongoServer> {
  const port = ports.port(0);
  const dataPath = join(folder.path, 'mongodb');
  mkdirSync(dataPath, { recursive: true });
  const mongod = new Mongod({
    binary: engine.binary,
    version: engine.version,
    port,
    dataPath,
    logFile: join(folder.path, 'mongodb.log'),
    arguments: mongodArguments(options, engine),
    onUnexpectedExit: at.onUnexpectedExit,
  });
  await mongod.start();
  const identity = await identifyServer({
    uri: `mongodb://127.0.0.1:${port}/?directConnection=true`,
    source: `Port ${port}`,
    limitMs: IDENTIFY_LIMIT_MS,
  }).catch(async (error: unknown) => {
    await mongod.kill();
    throw error;
  });
  at.progress(`${identity.engine} ${identity.version} is ready at port ${port}`);
  const server = ownedServer({
    name: `The database on port ${port}`,
    version: identity.version,
    process: mongod,
    ports,
    folder,
  });
  return Object.assign(server, { uri: replicaSetUri(port), engine: identity.engine });
}
