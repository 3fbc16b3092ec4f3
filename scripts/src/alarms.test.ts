import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { knownMetrics, metricsIn, prometheusFiles, prometheusGroups, prometheusRules } from './promql.js';

const rules = prometheusRules();
const alerts = rules.filter(({ alert }) => alert !== undefined);

/** What is typed, in a block or in a line: a program of these with its arguments. */
const COMMAND = /^(?:nightporter|docker compose|curl|mqadmin|mongosh|node|df) .+/s;

/** Commands of `nightporter` that are nothing without another word. */
const GROUPS_OF_COMMANDS = new Set(['outbox', 'dead', 'groups', 'relay', 'notifications']);

function commandsIn(markdown: string): readonly string[] {
  const blocks = [...markdown.matchAll(/```sh\n([^]*?)```/g)].flatMap(([, block]) => block!.split('\n'));
  const inline = [...markdown.replace(/```[^]*?```/g, '').matchAll(/`([^`]+)`/g)].map(([, text]) => text!);
  return [...blocks, ...inline].filter((text) => COMMAND.test(text));
}

describe('alarms', () => {
  it('ask for no metric that does not exist', () => {
    const known = knownMetrics();
    const asked = rules.flatMap(({ expr }) => metricsIn(expr));
    expect(asked.length).toBeGreaterThanOrEqual(rules.length);
    expect(asked.filter((metric) => !known.has(metric))).toEqual([]);
  });

  it('see what was recorded at their own moment: it stands before them in their group', () => {
    const recorded = new Set(rules.flatMap(({ record }) => record ?? []));
    const asked = prometheusGroups().flatMap(({ name, rules: inTurn }) =>
      inTurn.flatMap(({ alert, record, expr }, place) => {
        const before = new Set(inTurn.slice(0, place).map((rule) => rule.record));
        const figures = metricsIn(expr).filter((metric) => recorded.has(metric));
        return figures.map((figure) => ({ rule: `${name}: ${alert ?? record!}`, figure, isThere: before.has(figure) }));
      }),
    );
    expect(asked.length).toBeGreaterThan(5);
    expect(asked.filter(({ isThere }) => !isThere)).toEqual([]);
  });

  it('have a severity, a sentence, and a section that says what it means, what to look at and what to do', () => {
    const page = readFileSync(fileURLToPath(new URL('../../docs/operating/alarms.md', import.meta.url)), 'utf8');
    const sections = new Map(
      page
        .split('\n### ')
        .slice(1)
        .map((section) => [section.split('\n', 1)[0], section]),
    );
    expect([...sections.keys()].toSorted()).toEqual(alerts.map(({ alert }) => alert).toSorted());
    for (const { alert, labels, annotations } of alerts) {
      expect(['critical', 'warning', 'info'], alert).toContain(labels?.['severity']);
      expect(annotations?.['summary'], alert).toMatch(/\.$/);
      expect(annotations?.['runbook'], alert).toBe(`docs/operating/alarms.md#${alert!.toLowerCase()}`);
      for (const part of ['**Means:**', '**Look at:**', '**Do:**']) expect(sections.get(alert), alert).toContain(part);
    }
  });

  it('have in their section a command that shows more, and one that does something about it', () => {
    const page = readFileSync(fileURLToPath(new URL('../../docs/operating/alarms.md', import.meta.url)), 'utf8');
    const cli = readFileSync(fileURLToPath(new URL('../../docs/cli.md', import.meta.url)), 'utf8');
    for (const { alert } of alerts) {
      const [, section = ''] = page.split(`\n### ${alert!}\n`);
      const [body = ''] = section.split(/\n##+ /, 1);
      const [, look = '', act = ''] = /\*\*Look at:\*\*([^]*)\*\*Do:\*\*([^]*)/.exec(body) ?? [];
      for (const part of [look, act]) expect(commandsIn(part), `${alert!}: ${part}`).not.toEqual([]);
    }
    const asked = commandsIn(page).filter((command) => command.startsWith('nightporter '));
    expect(asked.length).toBeGreaterThan(alerts.length);
    for (const command of asked) {
      const words = command.split(' ').slice(1);
      const isKnown = [words.slice(0, 2), words.slice(0, 1)].some((path) =>
        cli.includes(`\n## nightporter ${path.join(' ')}\n`),
      );
      expect(isKnown, command).toBe(true);
      if (GROUPS_OF_COMMANDS.has(words[0] ?? ''))
        expect(cli, command).toContain(`\n## nightporter ${words[0]!} ${words[1] ?? ''}\n`);
    }
  });

  it('are tested in the situation that each is for', () => {
    const tested = prometheusFiles('tests')
      .map((file) => readFileSync(file, 'utf8'))
      .join('\n');
    for (const { alert } of alerts) {
      expect(tested, alert).toMatch(new RegExp(`alertname: ${alert!}\\n\\s+exp_alerts:\\n\\s+- exp_labels`));
      expect(tested, alert).toMatch(new RegExp(`alertname: ${alert!}\\n\\s+exp_alerts: \\[\\]`));
    }
  });

  const hasPromtool = spawnSync('promtool', ['--version']).error === undefined;
  it.skipIf(!hasPromtool)('fire there and nowhere else, as promtool runs them', { timeout: 300_000 }, (context) => {
    const check = spawnSync('promtool', ['check', 'rules', ...prometheusFiles('rules')], { encoding: 'utf8' });
    expect(check.status, check.stdout + check.stderr).toBe(0);
    const run = spawnSync('promtool', ['test', 'rules', ...prometheusFiles('tests')], { encoding: 'utf8' });
    expect(run.status, run.stdout + run.stderr).toBe(0);
    const situations = prometheusFiles('tests')
      .map((file) => readFileSync(file, 'utf8'))
      .join('\n');
    const count = (pattern: RegExp): number => [...situations.matchAll(pattern)].length;
    const figures = {
      alarms: alerts.length,
      'situations in which they fire': count(/exp_alerts:\n\s+- exp_labels/g),
      'in which they do not': count(/exp_alerts: \[\]/g),
    };
    // Printed by the tests' reporter, which prints what it finds there.
    Object.assign(context.task.meta, { figures, engine: 'promtool' });
  });
});
