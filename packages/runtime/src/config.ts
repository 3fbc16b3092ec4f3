import { NightporterError } from '@nightporter/protocol';
import type { ConfigOf, Secrecy, Setting, SettingTable } from './settings.js';

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads every setting of `table` from `env`; an empty variable counts as absent. Throws NP_CONFIG_INVALID naming every
 * wrong variable at once, each with its value (secrets hidden) and the accepted range.
 */
export function loadConfig<Table extends SettingTable>(table: Table, env: Environment): ConfigOf<Table> {
  const values: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const [key, definition] of Object.entries(table)) {
    const read = readSetting(definition, env);
    if (read.kind === 'value') values[key] = read.value;
    else problems.push(read.problem);
  }
  if (problems.length > 0) {
    const count = problems.length === 1 ? '1 setting is' : `${problems.length} settings are`;
    throw new NightporterError(
      'NP_CONFIG_INVALID',
      `${count} not usable:\n${problems.map((line) => `  ${line}`).join('\n')}`,
    );
  }
  return values as ConfigOf<Table>;
}

type Read =
  { readonly kind: 'value'; readonly value: unknown } | { readonly kind: 'problem'; readonly problem: string };

function readSetting(definition: Setting<unknown>, env: Environment): Read {
  const { name, kind, unit } = definition;
  const range = unit === undefined ? kind.accepts : `${kind.accepts}, in ${unit}`;
  const given = env[name];
  const raw = given === undefined || given === '' ? definition.default : given;
  if (raw === undefined) return { kind: 'problem', problem: `${name} is missing: expected ${range}` };
  const parsed = kind.schema.safeParse(raw);
  if (parsed.success) return { kind: 'value', value: parsed.data };
  return { kind: 'problem', problem: `${name} is ${shown(raw, definition.secret)}: expected ${range}` };
}

function shown(raw: string, secrecy: Secrecy | undefined): string {
  const visible = secrecy === undefined ? raw : masked(raw, secrecy);
  return visible.length > 200
    ? `${JSON.stringify(visible.slice(0, 200))}… (${visible.length} characters)`
    : JSON.stringify(visible);
}

/** A value with everything removed that must not be shown. */
export function masked(raw: string, secrecy: Secrecy): string {
  if (secrecy === 'whole') return '(hidden)';
  const [, scheme, rest = ''] = /^([a-z0-9+]+:\/\/)(.*)$/is.exec(raw) ?? [];
  // What does not even look like a URI may be the bare password in the wrong variable.
  if (scheme === undefined) return secrecy === 'location' ? raw : '(hidden)';
  const hosts = rest.slice(rest.lastIndexOf('@') + 1);
  const place = hosts.split('?', 1)[0] ?? '';
  return `${scheme}${rest.includes('@') ? '(hidden)@' : ''}${place}${hosts.includes('?') ? '?(hidden)' : ''}`;
}

/** The settings as a log line may show them: by variable, secrets hidden. */
export function describeConfig(table: SettingTable, env: Environment): Record<string, string> {
  return Object.fromEntries(
    Object.values(table).map((definition) => {
      const raw = env[definition.name] || (definition.default ?? '');
      return [definition.name, definition.secret === undefined || raw === '' ? raw : masked(raw, definition.secret)];
    }),
  );
}

/**
 * The secret texts themselves, so that the log can strike them out wherever an error message carries them. Texts under
 * six characters are left out: striking them would mangle ordinary words.
 */
export function secretsOf(table: SettingTable, env: Environment): readonly string[] {
  const secrets = Object.values(table).flatMap((definition) => {
    const raw = env[definition.name] ?? '';
    if (definition.secret === undefined) return [];
    return definition.secret === 'whole' ? [raw] : credentialsIn(raw);
  });
  return [...new Set(secrets.flatMap((secret) => [secret, decoded(secret)]))].filter((secret) => secret.length >= 6);
}

function credentialsIn(uri: string): readonly string[] {
  const [, userInfo = ''] = /^[a-z0-9+]+:\/\/(.*)@/is.exec(uri) ?? [];
  const password = userInfo.slice(userInfo.indexOf(':') + 1);
  return userInfo.includes(':') ? [password] : [];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A stray percent sign: the text then stands in messages as it is, and is struck out as it is.
    return text;
  }
}
