export { createHttpApp, type HttpAppOptions } from './app.js';
export { ProblemError, type ErrorProblem } from './errors.js';
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
