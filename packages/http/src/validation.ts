import type { FastifySchemaCompiler } from 'fastify';
import type { z } from 'zod';
import { commonProblem, type Problem, type ProblemField } from './problems.js';

/** A request that does not fit its schema; `fields` names each place. */
export class InvalidRequestError extends Error {
  readonly statusCode = 400;
  readonly problem: Problem;

  constructor(fields: readonly ProblemField[]) {
    super('the request does not fit its schema');
    this.name = 'InvalidRequestError';
    const places = fields.map(
      (field) => `${field.pointer ?? field.parameter ?? field.header ?? 'request'}: ${field.detail}`,
    );
    this.problem = commonProblem('invalid-request', places.join('; '), fields);
  }
}

/** More than this many places help nobody, and a hostile body must not choose the size of the answer. */
const FIELDS_MAX = 20;
const KEY_LENGTH_MAX = 100;

/** Checks one part of a request against its zod schema, naming every place that does not fit. */
export const validateWithZod: FastifySchemaCompiler<z.ZodType> = ({ schema, httpPart }) => {
  return (data: unknown) => {
    const parsed = schema.safeParse(data);
    if (parsed.success) return { value: parsed.data };
    const fields = parsed.error.issues.flatMap((issue) => fieldsOf(issue, httpPart ?? 'body')).slice(0, FIELDS_MAX);
    return { error: new InvalidRequestError(fields) };
  };
};

function fieldsOf(issue: z.core.$ZodIssue, part: string): readonly ProblemField[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      ...placeOf([...issue.path, key], part),
      detail: 'is not a field of this request',
    }));
  }
  return [{ ...placeOf(issue.path, part), detail: issue.message }];
}

function placeOf(path: readonly PropertyKey[], part: string): Omit<ProblemField, 'detail'> {
  const steps = path.map((step) => shortened(String(step)));
  if (part === 'body') return { pointer: `#${steps.map((step) => `/${escapePointer(step)}`).join('')}` };
  return part === 'headers' ? { header: steps.join('.') } : { parameter: steps.join('.') };
}

function shortened(step: string): string {
  // Only well-formed text may leave: a half surrogate pair has no UTF-8.
  const text = step.replaceAll(/\p{Surrogate}/gu, '\uFFFD');
  return text.length > KEY_LENGTH_MAX ? `${text.slice(0, KEY_LENGTH_MAX)}…` : text;
}

/** RFC 6901. */
function escapePointer(step: string): string {
  return step.replaceAll('~', '~0').replaceAll('/', '~1');
}
