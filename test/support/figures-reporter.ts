import { writeFileSync } from 'node:fs';
import type { Reporter, TestCase } from 'vitest/node';
import type { Figures } from './figures.js';

/** Where the figures of a run are kept as JSON, if anywhere. */
const FILE = process.env['NIGHTPORTER_FIGURES'];

const ERROR_MAX = 2_000;

interface Shown {
  readonly sentence: string;
  readonly outcome: string;
  readonly engine: string;
  readonly seconds: number;
  readonly figures: Figures;
}

/** Prints each test that has figures as one line: outcome, sentence, figures, engine. Tests without figures are the other reporters'. */
export default class FiguresReporter implements Reporter {
  readonly #shown: Shown[] = [];

  onTestCaseResult(test: TestCase): void {
    const { figures, engine = 'unknown engine' } = test.meta();
    if (figures === undefined) return;
    const { errors, state } = test.result();
    const seconds = Math.round((test.diagnostic()?.duration ?? 0) / 100) / 10;
    this.#shown.push({ sentence: test.fullName, outcome: state, engine, seconds, figures });
    const told = Object.entries(figures).map(([name, value]) => `${name} ${value}`);
    process.stdout.write(
      `${state === 'passed' ? '✓' : '✗'} ${test.fullName}: ${told.join(', ')} (${engine}, ${seconds} s)\n`,
    );
    // Whole errors are printed at the end of the run, which may be an hour away.
    for (const { message } of errors ?? []) process.stdout.write(`  ${message.slice(0, ERROR_MAX)}\n`);
  }

  onTestRunEnd(): void {
    if (FILE !== undefined) writeFileSync(FILE, `${JSON.stringify(this.#shown, null, 2)}\n`);
  }
}
