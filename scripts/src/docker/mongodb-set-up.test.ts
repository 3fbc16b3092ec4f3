import { readFileSync } from 'node:fs';
import { createContext, runInContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { DOCKER_FOLDER, readCompose, variablesOfCompose } from './compose.js';

const script = readFileSync(`${DOCKER_FOLDER}mongodb/set-up.js`, 'utf8');
const secrets = Object.fromEntries([...variablesOfCompose()].map((name) => [name, `${name}-0123456789`]));
const { services } = readCompose({ ...secrets, LOG_LEVEL: 'info' });

interface Shell {
  readonly failsFirst?: number;
  readonly isInitiated?: boolean;
  readonly hasUser?: boolean;
}

/** Runs the script as mongosh would, on a deployment that only takes down what it is asked. */
function run({ failsFirst = 0, isInitiated = false, hasUser = false }: Shell) {
  const done: [string, unknown][] = [];
  let failures = failsFirst;
  class Mongo {
    constructor(uri: string) {
      done.push(['connect', uri]);
      if (failures-- > 0) throw new Error('connection refused');
    }
    getDB() {
      return {
        adminCommand: (command: unknown) => {
          done.push(['command', command]);
          if (isInitiated) throw Object.assign(new Error('already initialized'), { code: 23 });
        },
        getUser: () => (hasUser ? {} : null),
        createUser: (user: unknown) => done.push(['createUser', user]),
        updateUser: (name: string, changes: object) => done.push(['updateUser', { name, ...changes }]),
      };
    }
  }
  let slept = 0;
  const env = { MONGO_ROOT_PASSWORD: 'root password', MONGO_PASSWORD: 'secret' };
  runInContext(
    script,
    createContext({ Mongo, process: { env }, print: () => undefined, sleep: () => (slept += 1), encodeURIComponent }),
  );
  return { done, slept, of: (kind: string) => done.filter(([what]) => what === kind).map(([, what]) => what) };
}

describe('docker/mongodb/set-up.js', () => {
  it('makes the members of docker/compose.yaml one replica set, under the name that they start with and the services connect to', () => {
    const members = Object.keys(services).filter((name) => /^mongo-\d+$/.test(name));
    expect(members).toHaveLength(3);
    const hosts = members.map((name) => `${name}:27017`);
    const { of } = run({});
    expect(of('command')).toEqual([
      { replSetInitiate: { _id: 'rs0', members: hosts.map((host, _id) => ({ _id, host })) } },
    ]);
    for (const member of members) expect(services[member]?.command?.join(' ')).toContain('--replSet rs0 --keyFile ');
    const { MONGODB_URI = '' } = services['relay']?.environment ?? {};
    expect(MONGODB_URI).toContain(`@${hosts.join(',')}/?replicaSet=rs0&`);
  });

  it('creates the user that the services connect as, who may do what they do and is no administrator', () => {
    const [user] = run({}).of('createUser') as { user: string; pwd: string; roles: { role: string }[] }[];
    expect(services['relay']?.environment?.['MONGODB_URI']).toMatch(new RegExp(`^mongodb://${user!.user}:`));
    expect(user).toMatchObject({ pwd: 'secret' });
    expect(user!.roles.map(({ role }) => role)).toEqual(['readWriteAnyDatabase', 'clusterMonitor', 'read']);
  });

  it('waits for the first member, and escapes the password', () => {
    const { done, slept } = run({ failsFirst: 3 });
    expect(slept).toBe(3);
    expect(done[0]).toEqual(['connect', 'mongodb://root:root%20password@mongo-1:27017/admin?directConnection=true']);
  });

  it('may be run again: then only the password is set anew', () => {
    const { of } = run({ isInitiated: true, hasUser: true });
    expect(of('createUser')).toEqual([]);
    expect(of('updateUser')).toMatchObject([{ name: 'nightporter', pwd: 'secret' }]);
  });

  it('gives up where the first member never answers', () => {
    expect(() => run({ failsFirst: 1_000 })).toThrow('connection refused');
  });
});
