export { RELAY_METRICS } from './metrics-table.js';
export { relayProblems, type SendHealth } from './health.js';
export { relayService } from './service.js';
