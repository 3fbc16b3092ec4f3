import type { z } from 'zod';
import type { EventDefinition } from './event-definition.js';

export interface Problem {
  readonly reason: string;
  readonly cause: unknown;
}

/** Why data does not fit a definition, or null. `tolerant` lets keys pass that the schema does not know. */
export function problemOf(
  definition: EventDefinition,
  data: unknown,
  unknownKeys: 'strict' | 'tolerant',
): Problem | null {
  try {
    const result = definition.schema.safeParse(data);
    if (result.success) return null;
    const issues = result.error.issues.filter(({ code }) => unknownKeys === 'strict' || code !== 'unrecognized_keys');
    if (issues.length === 0) return null;
    return { reason: issues.slice(0, ISSUES_SHOWN).map(describe).join('; '), cause: result.error };
  } catch (cause) {
    // A refinement that throws, or an asynchronous one, which cannot be awaited inside a decision.
    return { reason: `the schema itself failed: ${cause instanceof Error ? cause.message : String(cause)}`, cause };
  }
}

const ISSUES_SHOWN = 5;

function describe(issue: z.core.$ZodIssue): string {
  const steps = issue.path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`));
  return `payload${steps.join('')}: ${issue.message}`;
}
