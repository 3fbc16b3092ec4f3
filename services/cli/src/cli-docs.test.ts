import type { Command } from 'commander';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { Cli } from './cli.js';
import { createProgram } from './program.js';

const INTRODUCTION = `# The command line

\`npm run -s nightporter -- <command>\` in a checkout, \`nightporter <command>\` where the package is installed. Every command prints tables for
people, or one line of JSON with \`--json\`; progress and questions go to standard error. A message that begins with \`nightporter:\` ends with its
[code](errors.md).

| exit code | means                                                                                                   |
| --------- | ------------------------------------------------------------------------------------------------------- |
| 0         | done, and nothing is wrong                                                                              |
| 1         | the answer is no: differences, findings, something that is not there, refused, changed meanwhile        |
| 2         | wrong use: nothing was asked or done                                                                    |
| 3         | it could not be found out; of an action it is not known whether it was done: look again, then repeat it |

Where the databases are: the URI names the deployment of producers and relay. Databases that are not named are looked for there, by their
collections; each group's database by the group's documents. A group on another deployment is named with \`--group-db\`.

Written by \`npx vitest run --project unit services/cli/src/cli-docs.test.ts -u\` from the program itself.
`;

function helpOf(command: Command, path: string): string {
  let text = '';
  command.configureOutput({ writeOut: (part) => (text += part), getOutHelpWidth: () => 110 });
  command.outputHelp();
  const children = command.commands.map((child) => helpOf(child, `${path} ${child.name()}`));
  return [`## ${path}`, '', '```text', text.trim(), '```', '', ...children].join('\n');
}

describe('docs/cli.md', () => {
  it('says what the program says', async () => {
    const silent = { out: () => undefined, err: () => undefined, isInteractive: false, ask: () => Promise.resolve('') };
    const cli: Cli = { io: { ...silent, signal: new AbortController().signal }, exitCode: 0 };
    const text = [
      INTRODUCTION,
      '<!-- prettier-ignore-start -->',
      '',
      helpOf(createProgram(cli), 'nightporter'),
      '<!-- prettier-ignore-end -->',
      '',
    ].join('\n');
    await expect(text).toMatchFileSnapshot(fileURLToPath(new URL('../../../docs/cli.md', import.meta.url)));
  });
});

describe('docs/operating/where-is-my-event.md', () => {
  const read = (path: string): string =>
    readFileSync(fileURLToPath(new URL(`../../../${path}`, import.meta.url)), 'utf8');
  const page = read('docs/operating/where-is-my-event.md');

  it('explains every kind of difference that an audit names, and no other', () => {
    const [, kinds = ''] =
      /export type DifferenceKind =([^;]*);/.exec(read('packages/ledger/src/audit/contract.ts')) ?? [];
    const named = [...kinds.matchAll(/\| '([a-z-]+)'/g)].map(([, kind]) => kind);
    const explained = [...page.matchAll(/^\| `([a-z-]+)` /gm)].map(([, kind]) => kind);
    expect(named).toContain('gap');
    expect(explained.toSorted()).toEqual(named.toSorted());
  });

  it('walks from the order to the consumer, each station with commands and what their answers mean', () => {
    const [, walk = ''] = page.split(/^## The walk$/m);
    const stations = walk
      .split(/^## /m, 1)[0]!
      .split(/^### \d+\. /m)
      .slice(1);
    expect(stations.map((station) => station.split('\n', 1)[0])).toEqual([
      'The order',
      'The outbox',
      'The relay',
      'The broker',
      'The consumer',
    ]);
    for (const station of stations) {
      const [, commands = ''] = /```sh\n([^]*?)```/.exec(station) ?? [];
      expect(commands.split('\n').filter((line) => /^(nightporter|curl|mqadmin) /.test(line)).length).toBeGreaterThan(
        2,
      );
      expect(station.match(/^- /gm)?.length, station).toBeGreaterThan(1);
    }
    expect(stations[3]).toMatch(/^mqadmin queryMsgByKey /m);
  });

  it('names commands that there are', () => {
    const cli = read('docs/cli.md');
    const named = [...page.matchAll(/(?:`|^)nightporter ([a-z]+)(?: ([a-z-]+))?/gm)].map(([, command, sub]) => [
      command,
      sub,
    ]);
    expect(named.length).toBeGreaterThan(5);
    for (const [command, sub] of named) {
      expect(cli).toContain(`## nightporter ${command ?? ''}\n`);
      if (['outbox', 'dead', 'groups', 'relay'].includes(command ?? ''))
        expect(cli).toContain(`## nightporter ${command ?? ''} ${sub ?? ''}\n`);
    }
  });
});
