import * as schemas from './schemas.js';

const problems = {
  content: { 'application/problem+json': { schema: schemas.problemAnswer } },
  description: 'Refused; nothing was written.',
};

/** The answers that every route may give. */
export const answers = { '4xx': problems, 503: { ...problems, description: 'Try again.' } };
