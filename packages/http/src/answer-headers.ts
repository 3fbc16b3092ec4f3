import { jsonSchemaTransform } from 'fastify-type-provider-zod';

/** A header of an answer, on the OpenAPI page. */
export interface AnswerHeader {
  readonly type: 'string' | 'integer';
  readonly description: string;
}

export type AnswerHeaders = Readonly<Record<string, AnswerHeader>>;

/** On every answer. */
const COMMON: AnswerHeaders = {
  'X-Request-Id': {
    type: 'string',
    description:
      'The request’s own X-Request-Id where it can be written anywhere (1 to 128 of A-Z a-z 0-9 . _ : -), else one that was made.',
  },
};

type Transform = typeof jsonSchemaTransform;

/** What the transform of zod makes of a route, with the headers of its answers, which that leaves out: those under `headers`, and the common ones. */
export const transformWithHeaders: Transform = (document) => {
  const transformed = jsonSchemaTransform(document);
  // A route may have no schema, whatever the type says.
  if (!isRecord(document.schema) || !isRecord(transformed.schema)) return transformed;
  const [written, page] = [document.schema['response'], transformed.schema['response']];
  if (!isRecord(page)) return transformed;
  const response = Object.fromEntries(
    Object.entries(page).map(([status, answer]) => {
      const own = isRecord(written) ? written[status] : undefined;
      const headers = isRecord(own) && isRecord(own['headers']) ? own['headers'] : {};
      return [status, isRecord(answer) ? { ...answer, headers: { ...COMMON, ...headers } } : answer];
    }),
  );
  return { ...transformed, schema: { ...transformed.schema, response } };
};

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
