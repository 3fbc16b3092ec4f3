/**
 * One table of settings per service: `--help`, docs/configuration.md and the parser all read it, so that none can say
 * something that the others do not.
 */
import { ARCHIVE_LOCATION_ACCEPTS, archiveLocation } from '@nightporter/protocol';
import { z } from 'zod';

/** How to read a value from the text of an environment variable, and what to say when it does not fit. */
export interface ValueKind<Value> {
  readonly schema: z.ZodType<Value, string>;
  /** The accepted range in words: "a whole number from 1 to 65535". */
  readonly accepts: string;
}

/**
 * Why a value must not be shown: `whole` hides all of it, `credentials` only what a URI holds before its `@` and behind
 * its `?`, and all of what is no URI; `location` shows what is no URI, as a path.
 */
export type Secrecy = 'whole' | 'credentials' | 'location';

export interface Setting<Value> {
  /** The environment variable. */
  readonly name: string;
  readonly kind: ValueKind<Value>;
  readonly description: string;
  readonly unit?: string;
  /** Written as in the environment, and parsed like it. Without a default the variable is required. */
  readonly default?: string;
  readonly secret?: Secrecy;
}

export type SettingTable = Readonly<Record<string, Setting<unknown>>>;

export type ConfigOf<Table extends SettingTable> = {
  readonly [Key in keyof Table]: Table[Key] extends Setting<infer Value> ? Value : never;
};

/** Keeps the value type of one setting; a plain object literal would lose it. */
export function setting<Value>(definition: Setting<Value>): Setting<Value> {
  return definition;
}

export function integer(range: { min: number; max: number }): ValueKind<number> {
  const digits = /^-?\d{1,15}$/;
  return {
    schema: z
      .string()
      .refine((text) => digits.test(text))
      .transform(Number)
      .refine((value) => value >= range.min && value <= range.max),
    accepts: `a whole number from ${range.min} to ${range.max}`,
  };
}

/** A number with or without a fraction, written plainly. */
export function decimal(range: { min: number; max: number }): ValueKind<number> {
  return {
    schema: z
      .string()
      .refine((text) => /^-?\d{1,15}(\.\d{1,15})?$/.test(text))
      .transform(Number)
      .refine((value) => value >= range.min && value <= range.max),
    accepts: `a number from ${range.min} to ${range.max}`,
  };
}

export function text(limits: { charactersMax: number; pattern?: RegExp; accepts?: string }): ValueKind<string> {
  const { charactersMax, pattern, accepts } = limits;
  return {
    schema: z
      .string()
      .min(1)
      .max(charactersMax)
      .refine((value) => pattern?.test(value) ?? true),
    accepts: accepts ?? `1 to ${charactersMax} characters`,
  };
}

/** Text that may be left out: then null. */
export function optionalText(limits: { charactersMax: number }): ValueKind<string | null> {
  return {
    schema: z
      .string()
      .max(limits.charactersMax)
      .transform((value) => (value === '' ? null : value)),
    accepts: `nothing, or up to ${limits.charactersMax} characters`,
  };
}

/** Where archive files are, as `openArchive` takes it; may be left out: then null. */
export function optionalArchiveLocation(): ValueKind<string | null> {
  const { schema } = optionalText({ charactersMax: 4_096 });
  return {
    schema: schema.refine((value) => value === null || archiveLocation(value).kind !== 'malformed'),
    accepts: `nothing, or ${ARCHIVE_LOCATION_ACCEPTS}`,
  };
}

export function choice<const Option extends string>(options: readonly [Option, ...Option[]]): ValueKind<Option> {
  return { schema: z.string().pipe(z.enum(options)), accepts: `one of ${options.join(', ')}` };
}

export function flag(): ValueKind<boolean> {
  return {
    schema: z
      .string()
      .pipe(z.enum(['true', 'false']))
      .transform((value) => value === 'true'),
    accepts: 'true or false',
  };
}

/** Values separated by commas; blanks around them are dropped, repeats are refused. */
export function list<Item>(item: ValueKind<Item>, limits: { itemsMax: number }): ValueKind<readonly Item[]> {
  return {
    schema: z
      .string()
      .transform((value) => value.split(',').map((part) => part.trim()))
      .refine((parts) => new Set(parts).size === parts.length)
      .pipe(z.array(item.schema).min(1).max(limits.itemsMax)),
    accepts: `1 to ${limits.itemsMax} different values separated by commas, each ${item.accepts}`,
  };
}

/** A list that may be left out: then empty. */
export function optionalList<Item>(item: ValueKind<Item>, limits: { itemsMax: number }): ValueKind<readonly Item[]> {
  const some = list(item, limits);
  return {
    schema: z.string().transform((value, context) => readList(some, value, context)),
    accepts: `nothing, or ${some.accepts}`,
  };
}

function readList<Item>(some: ValueKind<readonly Item[]>, value: string, context: z.RefinementCtx): readonly Item[] {
  if (value === '') return [];
  const parsed = some.schema.safeParse(value);
  if (parsed.success) return parsed.data;
  context.addIssue({ code: 'custom', message: some.accepts });
  return z.NEVER;
}

/** The address of an HTTP server; null where it is left out. */
export function optionalUrl(): ValueKind<string | null> {
  const isUrl = (value: string): boolean =>
    value === '' || (value.length <= 2048 && /^https?:\/\//.test(value) && URL.canParse(value));
  return {
    schema: z
      .string()
      .refine(isUrl)
      .transform((value) => (value === '' ? null : value)),
    accepts: 'nothing, or an address http://… or https://…',
  };
}

const KEY_AND_VALUE = /^\s*([\w.!#$%&'*+^`|~-]{1,128})\s*=\s*([^,;=\s][^,]*?|)\s*$/;

/** `key=value` pairs separated by commas, values percent-encoded where they hold a comma, as OpenTelemetry writes them. May be left out. */
export function keyValues(limits: { pairsMax: number }): ValueKind<Readonly<Record<string, string>>> {
  const accepts = `nothing, or up to ${limits.pairsMax} pairs key=value separated by commas`;
  return {
    schema: z
      .string()
      .max(8_192)
      .transform((value, context) => readPairs(value, limits.pairsMax, context)),
    accepts,
  };
}

function readPairs(value: string, pairsMax: number, context: z.RefinementCtx): Readonly<Record<string, string>> {
  const parts = value === '' ? [] : value.split(',');
  const pairs = parts.map((part) => KEY_AND_VALUE.exec(part));
  if (pairs.length <= pairsMax && pairs.every((pair) => pair !== null)) {
    try {
      return Object.fromEntries(pairs.map(([, key = '', text = '']) => [key, decodeURIComponent(text)]));
    } catch (error) {
      if (!(error instanceof URIError)) throw error;
    }
  }
  context.addIssue({ code: 'custom', message: 'not pairs key=value' });
  return z.NEVER;
}

const URI_OF_MONGODB = /^mongodb(\+srv)?:\/\/[^\s]+$/;

export function mongodbUri(): ValueKind<string> {
  return text({
    charactersMax: 4096,
    pattern: URI_OF_MONGODB,
    accepts: 'a connection string mongodb://… or mongodb+srv://…',
  });
}

const HOST_AND_PORT = /^(\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+):\d{1,5}$/;

/** `host:port`, several separated by semicolons, as RocketMQ's clients write them. */
export function brokerEndpoints(): ValueKind<string> {
  return {
    schema: z
      .string()
      .max(2048)
      .refine((value) => value.split(';').every((part) => HOST_AND_PORT.test(part) && portOf(part) <= 65_535)),
    accepts: 'host:port of the RocketMQ proxy, several separated by semicolons',
  };
}

function portOf(endpoint: string): number {
  return Number(endpoint.slice(endpoint.lastIndexOf(':') + 1));
}
