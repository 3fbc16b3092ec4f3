import { describe, expect, it } from 'vitest';
import { createLogger } from './logger.js';

function capture(options: { secrets?: readonly string[] } = {}) {
  const lines: string[] = [];
  const logger = createLogger({
    name: 'test',
    level: 'info',
    ...options,
    destination: { write: (line) => lines.push(line) },
  });
  return { lines, logger };
}

describe('logger', () => {
  it('writes one JSON object per line with the service, level and an RFC 3339 time', () => {
    const { lines, logger } = capture();
    logger.info({ eventId: 'e1' }, 'published');
    expect(JSON.parse(lines[0]!)).toMatchObject({ service: 'test', level: 'info', eventId: 'e1', msg: 'published' });
    expect(JSON.parse(lines[0]!)).toHaveProperty('time', expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/));
  });

  it('strikes out secrets in messages, in errors and in nested fields', () => {
    const { lines, logger } = capture({ secrets: ['hunter"22'] });
    logger.error(
      { err: new Error('cannot log in with hunter"22'), deep: { deeper: { token: 'abc' } }, password: 'x' },
      'no hunter"22 here',
    );
    expect(lines[0]).not.toContain('hunter');
    expect(JSON.parse(lines[0]!)).toMatchObject({
      msg: 'no (hidden) here',
      password: '(hidden)',
      deep: { deeper: { token: '(hidden)' } },
    });
  });

  it('leaves out what is below its level', () => {
    const { lines, logger } = capture();
    logger.debug('quiet');
    expect(lines).toEqual([]);
  });

  it('writes one readable line where pretty is asked for', () => {
    const lines: string[] = [];
    createLogger({
      name: 'test',
      level: 'info',
      pretty: true,
      destination: { write: (line) => lines.push(line) },
    }).info('hello');
    expect(lines.join('')).toContain('(test) hello');
    expect(lines.join('')).not.toContain('{');
  });
});
