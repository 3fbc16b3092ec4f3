import { isNightporterError, NightporterError } from '@nightporter/protocol';
import { findOnPath } from './find-on-path.js';
import { runTool } from './run-tool.js';

const PROBE_LIMIT_MS = 15_000;
const NAMES = ['python3', 'python3.13', 'python3.12', 'python3.11', 'python3.10', 'python'];
const PROBE = `
import sys
print("version %d.%d" % sys.version_info[:2])
try:
    import ensurepip, venv
    print("venv")
except ImportError:
    pass
`;
const HOW =
  'Install Python 3.10 or newer with its venv module (Debian, Ubuntu: apt-get install python3 python3-venv; macOS: brew install python), ' +
  'or set MONGODB_URI to a MongoDB replica set that runs already, or put a mongod on the PATH.';

export type PythonVerdict = { kind: 'usable' } | { kind: 'unusable'; why: string };

/** The first Python on the PATH that can make the environment for SecantusDB. */
export async function findPython(environment: NodeJS.ProcessEnv): Promise<string> {
  const refused: string[] = [];
  for (const name of NAMES) {
    const command = findOnPath(name, environment);
    if (command === undefined) continue;
    const verdict = await probe(command, environment);
    if (verdict.kind === 'usable') return command;
    refused.push(`${command} ${verdict.why}`);
  }
  const found = refused.length === 0 ? 'there is no Python on the PATH' : refused.join(' and ');
  throw new NightporterError(
    'NP_EMBEDDED_TOOL_MISSING',
    `Without a mongod, the database is SecantusDB, which needs Python 3.10 or newer with venv, but ${found}. ${HOW}`,
  );
}

async function probe(command: string, environment: NodeJS.ProcessEnv): Promise<PythonVerdict> {
  try {
    return judgePython(await runTool({ command, arguments: ['-c', PROBE], environment, limitMs: PROBE_LIMIT_MS }));
  } catch (error) {
    if (!isNightporterError(error)) throw error;
    return { kind: 'unusable', why: 'does not run' };
  }
}

/** Reads what the probe printed: its version, and whether it can make virtual environments. */
export function judgePython(probed: string): PythonVerdict {
  const match = /version (\d+)\.(\d+)/.exec(probed);
  const [major, minor] = [Number(match?.[1] ?? 0), Number(match?.[2] ?? 0)];
  if (major < 3 || (major === 3 && minor < 10)) return { kind: 'unusable', why: `is version ${major}.${minor}` };
  if (!/^venv$/m.test(probed))
    return { kind: 'unusable', why: `(version ${major}.${minor}) comes without venv and ensurepip` };
  return { kind: 'usable' };
}
