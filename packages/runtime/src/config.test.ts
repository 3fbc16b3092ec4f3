import { isNightporterError } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { archiveSetting, commonSettings, mongodbSettings, rocketmqSettings } from './common-settings.js';
import { describeConfig, loadConfig, masked, secretsOf } from './config.js';
import { configurationSection, helpText } from './help.js';
import { brokerEndpoints, flag, integer, list, optionalList, setting, text, type ValueKind } from './settings.js';

const table = {
  ...commonSettings({ defaultPort: 3000 }),
  ...mongodbSettings({ defaultDatabase: 'orders' }),
  ...rocketmqSettings(),
};
const required = { MONGODB_URI: 'mongodb://127.0.0.1:27017/?replicaSet=rs', ROCKETMQ_ENDPOINTS: '127.0.0.1:8081' };

function messageOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (isNightporterError(error, 'NP_CONFIG_INVALID')) return error.message;
    throw error;
  }
  throw new Error('nothing was refused');
}

describe('configuration', () => {
  it('reads values, and defaults where a variable is absent or empty', () => {
    const config = loadConfig(table, { ...required, PORT: '8080', HOST: '' });
    expect(config).toMatchObject({
      port: 8080,
      host: '127.0.0.1',
      logLevel: 'info',
      rocketmqAccessKey: null,
      rocketmqTls: false,
    });
  });

  it('names every wrong variable at once, with its value and the accepted range', () => {
    const message = messageOf(() => loadConfig(table, { MONGODB_URI: 'http://x', PORT: '70000', SHUTDOWN_MS: '5s' }));
    expect(message).toContain('PORT is "70000": expected a whole number from 0 to 65535');
    expect(message).toContain('SHUTDOWN_MS is "5s": expected a whole number from 100 to 600000, in ms');
    expect(message).toContain('MONGODB_URI is "http://x": expected a connection string');
    expect(message).toContain('ROCKETMQ_ENDPOINTS is missing');
  });

  it('shows no secret in an error, not even a long or a misplaced one', () => {
    const message = messageOf(() =>
      loadConfig(table, {
        ...required,
        MONGODB_URI: 'mongo://user:hunter22@db:27017/?tlsCertificateKeyFilePassword=hunter33',
        ROCKETMQ_SECRET_KEY: 'hunter44'.repeat(100),
      }),
    );
    expect(message).not.toContain('hunter');
    expect(messageOf(() => loadConfig(table, { ...required, MONGODB_URI: 'hunter55' }))).not.toContain('hunter');
  });

  it.each<[string, ValueKind<unknown>, string, unknown]>([
    ['a whole number', integer({ min: 1, max: 10 }), '10', 10],
    ['a number over the range', integer({ min: 1, max: 10 }), '11', undefined],
    ['a number under the range', integer({ min: 1, max: 10 }), '0', undefined],
    ['a fraction', integer({ min: 1, max: 10 }), '1.5', undefined],
    ['an exponent', integer({ min: 1, max: 10 }), '1e1', undefined],
    ['a blank around a number', integer({ min: 1, max: 10 }), ' 1', undefined],
    ['a flag', flag(), 'true', true],
    ['a flag in other words', flag(), 'yes', undefined],
    ['a list with blanks', list(text({ charactersMax: 9 }), { itemsMax: 2 }), 'a, b', ['a', 'b']],
    ['a list with a repeat', list(text({ charactersMax: 9 }), { itemsMax: 2 }), 'a,a', undefined],
    ['a list with an empty item', list(text({ charactersMax: 9 }), { itemsMax: 2 }), 'a,', undefined],
    ['a list that is too long', list(text({ charactersMax: 9 }), { itemsMax: 2 }), 'a,b,c', undefined],
    ['an empty optional list', optionalList(text({ charactersMax: 9 }), { itemsMax: 2 }), '', []],
    ['a wrong optional list', optionalList(text({ charactersMax: 1 }), { itemsMax: 2 }), 'ab', undefined],
    ['two endpoints', brokerEndpoints(), 'a:1;[::1]:8081', 'a:1;[::1]:8081'],
    ['an endpoint without port', brokerEndpoints(), 'localhost', undefined],
    ['an endpoint with a scheme', brokerEndpoints(), 'http://localhost:1', undefined],
    ['an endpoint with port 65536', brokerEndpoints(), 'localhost:65536', undefined],
  ])('%s', (_name, kind, raw, expected) => {
    const parsed = kind.schema.safeParse(raw);
    expect(parsed.success ? parsed.data : undefined).toEqual(expected);
  });

  it('parses every default that its own tables give', () => {
    for (const definition of Object.values(table)) {
      if (definition.default === undefined) continue;
      expect(definition.kind.schema.safeParse(definition.default).success, definition.name).toBe(true);
    }
  });
});

describe('secrets', () => {
  it.each([
    ['mongodb://a:p%40ss@h:1/db?x=1', 'mongodb://(hidden)@h:1/db?(hidden)'],
    ['mongodb://h:1,g:2/', 'mongodb://h:1,g:2/'],
    ['mongodb+srv://a:p@ss/w@h/', 'mongodb+srv://(hidden)@h/'],
    ['no uri at all', '(hidden)'],
  ])('of %s are not shown', (uri, shown) => {
    expect(masked(uri, 'credentials')).toBe(shown);
  });

  it('are not shown of the place of an archive, of which the rest is, also where it is refused', () => {
    const archive = { archiveFolder: archiveSetting('Where the files are.') };
    const place = (ARCHIVE_FOLDER: string) => describeConfig(archive, { ARCHIVE_FOLDER })['ARCHIVE_FOLDER'];
    expect(place('/var/lib/archive')).toBe('/var/lib/archive');
    expect(place('s3://archive/orders')).toBe('s3://archive/orders');
    expect(place('s3://AKIA:hunter22@archive/orders')).toBe('s3://(hidden)@archive/orders');
    const refused = messageOf(() => loadConfig(archive, { ARCHIVE_FOLDER: 's3://AKIA:hunter22@archive/orders' }));
    expect(refused).toContain('ARCHIVE_FOLDER is "s3://(hidden)@archive/orders": expected nothing, or the path');
    expect(loadConfig(archive, {})).toEqual({ archiveFolder: null });
  });

  it('are found decoded and encoded, so that the log can strike them out', () => {
    const env = {
      MONGODB_URI: 'mongodb://a:p%40ssword@h:1/',
      ROCKETMQ_SECRET_KEY: 'very-secret',
      ROCKETMQ_ACCESS_KEY: 'short',
    };
    expect(secretsOf(table, env)).toEqual(['p%40ssword', 'p@ssword', 'very-secret']);
  });

  it('are hidden in the description of the settings', () => {
    const shown = JSON.stringify(describeConfig(table, { ...required, ROCKETMQ_SECRET_KEY: 'very-secret' }));
    expect(shown).toContain('"ROCKETMQ_SECRET_KEY":"(hidden)"');
    expect(shown).toContain('mongodb://127.0.0.1:27017/?(hidden)');
    expect(shown).not.toContain('very-secret');
  });
});

describe('help', () => {
  const service = { name: 'orders-api', description: 'Orders over HTTP.' };

  it('names each variable with meaning, range, unit and default', () => {
    const help = helpText(service, table);
    expect(help).toContain('SHUTDOWN_MS');
    expect(help).toContain('a whole number from 100 to 600000; in ms; default 5000');
    expect(help).toContain('connection string mongodb://… or mongodb+srv://…; required');
  });

  it('writes the same facts as a table, with pipes escaped', () => {
    const pipe = { odd: setting({ name: 'ODD', kind: flag(), default: 'true', description: 'a | b' }) };
    expect(configurationSection(service, pipe)).toContain('| `ODD` | a \\| b | true or false |  | `true` |');
  });
});
