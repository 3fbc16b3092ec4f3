export { consoleService } from './service.js';
export { buildConsole, type ConsoleOptions } from './http/app.js';
export { createOperations, type Operations } from './ops/operations.js';
export { openProducers, type Producers } from './producers.js';
