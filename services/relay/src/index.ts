export { relayProblems, type SendHealth } from './health.js';
export { relayService } from './service.js';
