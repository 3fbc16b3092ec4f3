import { beforeEach, describe, expect, it } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { cli } from './cli.support.js';
import { operationsFixture, type OperationsFixture } from './operations.support.js';

const shared = sharedDatabase();
let fixture: OperationsFixture;

beforeEach(async () => {
  fixture = await operationsFixture(shared);
});

describe('in a terminal', () => {
  it('the timeline is told in sentences, as JSON with --json, and with 1 where somebody has to act', async () => {
    const ids = await fixture.commit('1', 2);
    await fixture.publish(ids);
    await fixture.settle(ids.slice(0, 1));
    await fixture.park(ids[1]!, 'dead');
    const settled = await cli(fixture, ['timeline', ids[0]!]);
    expect(settled).toMatchObject({ code: 0, err: '' });
    expect(settled.out).toContain(`SampleHappened ${ids[0]!}`);
    expect(settled.out).toContain('The relay has published it.');
    expect(settled.out).toMatch(new RegExp(`${fixture.group} +1 +0 +\\d{4}-.*Z +applied`));
    const dead = await cli(fixture, ['timeline', ids[1]!, '--json']);
    expect(dead.code).toBe(1);
    expect(JSON.parse(dead.out)).toMatchObject({
      kind: 'known',
      payload: null,
      groups: [{ verdict: { kind: 'dead-letter' } }],
    });
    expect(JSON.parse((await cli(fixture, ['timeline', ids[1]!, '--json', '--payload'])).out)).toMatchObject({
      payload: { value: 2 },
    });
    const unknown = await cli(fixture, ['timeline', 'no-such-event']);
    expect(unknown).toMatchObject({ code: 1, out: expect.stringContaining('is nowhere') });
  });

  it('the history of an aggregate is a table with a column per group, and goes on with --after', async () => {
    const ids = await fixture.commit('a/b', 3);
    await fixture.publish(ids);
    await fixture.settle(ids.slice(0, 1));
    const first = await cli(fixture, ['aggregate', 'operations-tests/sample/a%2Fb', '--limit', '2']);
    expect(first).toMatchObject({ code: 0, out: expect.stringContaining('more: --after 2') });
    expect(first.out).toMatch(/1 +SampleHappened +\S+ +PUBLISHED +\S+ +applied/);
    const rest = await cli(fixture, ['aggregate', 'operations-tests/sample/a%2Fb', '--after', '2', '--json']);
    expect(JSON.parse(rest.out)).toMatchObject({ headVersion: 3, next: null, entries: [{ version: 3 }] });
    expect((await cli(fixture, ['aggregate', 'operations-tests/sample/nobody'])).code).toBe(1);
    expect((await cli(fixture, ['aggregate', 'a/b'])).code).toBe(2);
  });

  it('a search pages with its cursor, and 1 says that nothing was found', async () => {
    const ids = await fixture.commit('1', 3, { correlationId: 'story' });
    const page = JSON.parse(
      (await cli(fixture, ['search', '--correlation', 'story', '--limit', '2', '--json'])).out,
    ) as { cursor: string; events: { eventId: string }[] };
    expect(page.events.map(({ eventId }) => eventId)).toEqual([ids[2], ids[1]]);
    const rest = await cli(fixture, ['search', '--correlation', 'story', '--cursor', page.cursor]);
    expect(rest).toMatchObject({ code: 0, out: expect.stringContaining(ids[0]!) });
    expect((await cli(fixture, ['search', '--type', 'Nothing'])).code).toBe(1);
    expect((await cli(fixture, ['search', '--status', 'LOST'])).code).toBe(2);
  });

  it('the status says with 1 that no relay is there, and with 0 that all is well', async () => {
    const ids = await fixture.commit('1', 1);
    expect((await cli(fixture, ['status'])).code).toBe(1);
    await fixture.lease();
    await fixture.publish(ids);
    await fixture.settle(ids);
    await fixture.sweep();
    const well = await cli(fixture, ['status']);
    expect(well).toMatchObject({ code: 0, err: '' });
    expect(well.out).toContain(`Relay (${fixture.relayDatabase})`);
  });

  it('a server that is not there is 3, and a missing URI 2', async () => {
    const { runCli } = await import('@nightporter/cli');
    let err = '';
    const io = {
      out: () => undefined,
      err: (text: string) => (err += text),
      isInteractive: false,
      ask: () => Promise.resolve(''),
      signal: new AbortController().signal,
    };
    const uri = 'mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=100';
    expect(await runCli(['status', '--mongodb-uri', uri], io)).toBe(3);
    expect(err).toContain('NP_STORE_UNAVAILABLE');
    expect(await runCli(['status', '--no-such-flag'], io)).toBe(2);
  });
});
