import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

export const DOCKER_FOLDER = fileURLToPath(new URL('../../../docker/', import.meta.url));

/** `<<` merges; the file is ours, so that aliases need no limit. */
const AS_COMPOSE = { merge: true, maxAliasCount: -1 };

type Texts = Readonly<Record<string, string>>;

/** What we ask of a service of docker/compose.yaml. */
export interface ComposeService {
  readonly image?: string;
  readonly build?: { readonly context: string; readonly dockerfile: string };
  readonly init?: boolean;
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly environment?: Texts;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly secrets?: readonly string[];
  readonly profiles?: readonly string[];
  readonly stop_grace_period?: string;
  readonly read_only?: boolean;
  readonly restart?: string;
  readonly healthcheck?: { readonly test?: readonly string[]; readonly disable?: boolean };
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
}

export interface Compose {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly volumes: Readonly<Record<string, unknown>>;
  readonly secrets: Readonly<Record<string, { readonly environment: string }>>;
}

/** docker/compose.yaml as Compose reads it, with variables of `env` in place. */
export function readCompose(env: Texts): Compose {
  const document: unknown = parse(readFileSync(`${DOCKER_FOLDER}compose.yaml`, 'utf8'), AS_COMPOSE);
  return interpolated(document, env) as Compose;
}

/** The variables that docker/compose.yaml asks for. */
export function variablesOfCompose(): ReadonlySet<string> {
  const text = readFileSync(`${DOCKER_FOLDER}compose.yaml`, 'utf8');
  const { secrets } = parse(text, AS_COMPOSE) as Compose;
  const inText = [...text.matchAll(/\$\{([A-Z_]+)/g)].map(([, name = '']) => name);
  return new Set([...inText, ...Object.values(secrets).map(({ environment }) => environment)]);
}

/** `NAME=value` lines; comments and empty lines are left out. */
export function readEnvFile(file: string): Texts {
  const lines = readFileSync(file, 'utf8').split('\n');
  const pairs = lines.flatMap((line) => {
    const [, name, value] = /^([A-Z_]+)=(.*)$/.exec(line) ?? [];
    return name === undefined || value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(pairs);
}

function interpolated(node: unknown, env: Texts): unknown {
  if (typeof node === 'string') return filledIn(node, env);
  if (Array.isArray(node)) return node.map((item) => interpolated(item, env));
  if (node === null || typeof node !== 'object') return node;
  return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, interpolated(value, env)]));
}

/** `${NAME:-default}` and `${NAME:?message}`, where an empty variable counts as absent, and `$$` for `$`. */
function filledIn(text: string, env: Texts): string {
  return text.replace(
    /\$(?:\$|\{([A-Z_]+)(?::([-?])([^}]*))?\})/g,
    (whole, name?: string, kind?: string, rest = '') => {
      if (name === undefined) return '$';
      const value = env[name] ?? '';
      if (value !== '') return value;
      if (kind === '-') return rest as string;
      throw new Error(`${whole} has no value: ${kind === '?' ? (rest as string) : `${name} is not set`}`);
    },
  );
}
