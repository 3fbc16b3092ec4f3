export { consoleService } from './service.js';
export { buildConsole, type ConsoleOptions } from './http/app.js';
export { openProducers, type Producers } from './producers.js';
