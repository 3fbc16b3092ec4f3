import { runService } from '@nightporter/runtime';
import { consoleService } from './service.js';

await runService(consoleService);
