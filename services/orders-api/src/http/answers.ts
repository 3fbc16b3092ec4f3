import { problemAnswers, type AnswerHeaders } from '@nightporter/http';
import { orderAnswer, unchangedAnswer } from './schemas.js';

/** Answers that have headers of their own, as the OpenAPI page shows them. */

const tag = {
  ETag: { type: 'string', description: 'The version of the order, quoted: send it as If-Match or If-None-Match.' },
} as const satisfies AnswerHeaders;

const replayed = {
  'Idempotency-Replayed': {
    type: 'string',
    description: 'true: this is the first answer to the Idempotency-Key, and nothing was done anew.',
  },
} as const satisfies AnswerHeaders;

const location = { Location: { type: 'string', description: 'Where the order is.' } } as const satisfies AnswerHeaders;

function orderWith(description: string, headers: AnswerHeaders) {
  return { description, content: { 'application/json': { schema: orderAnswer } }, headers: { ...tag, ...headers } };
}

const refused = problemAnswers['4xx'];
const staleTag = { ETag: { type: 'string', description: 'With 412: the version of the order now.' } } as const;

const commandProblems = {
  ...problemAnswers,
  '4xx': { ...refused, headers: { ...refused.headers, ...replayed, ...staleTag } },
};

export const createAnswers = {
  201: orderWith('The order as it was placed.', { ...location, ...replayed }),
  ...commandProblems,
};
export const commandAnswers = { 200: orderWith('The order after the command.', replayed), ...commandProblems };
export const readAnswers = {
  200: orderWith('The order.', {}),
  304: {
    description: 'The order is as `if-none-match` says.',
    content: { 'application/json': { schema: unchangedAnswer } },
    headers: tag,
  },
  ...problemAnswers,
};
