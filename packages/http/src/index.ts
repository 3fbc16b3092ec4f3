export type { AnswerHeader, AnswerHeaders } from './answer-headers.js';
export { createHttpApp, type HttpAppOptions } from './app.js';
export { ProblemError, type ErrorProblem } from './errors.js';
export { HTTP_METRICS } from './metrics.js';
export { traceOf } from './tracing.js';
export {
  defineProblems,
  problemAnswer,
  problemAnswers,
  sendProblem,
  type Problem,
  type ProblemField,
  type ProblemKinds,
  type ProblemOf,
} from './problems.js';
