import type { MongoEngine } from '@nightporter/embedded';
import { inject, type TestContext } from 'vitest';
import type {} from './stack.js';

/** What a proof saw: counts, times with their unit in the name, ratios. */
export type Figures = Readonly<Record<string, string | number>>;

declare module 'vitest' {
  export interface TaskMeta {
    /** Printed beside the sentence by figures-reporter.ts. */
    figures?: Figures;
    engine?: string;
  }
}

/**
 * Gives the figures of this test to the report. What was given before stays unless it is given anew. `engine` is of tests that have a
 * stack of their own.
 */
export function showFigures(
  { task }: Pick<TestContext, 'task'>,
  figures: Figures,
  engine: MongoEngine = inject('mongodbEngine'),
): void {
  task.meta.engine = engine;
  task.meta.figures = { ...task.meta.figures, ...figures };
}
