import { runService } from '@nightporter/runtime';
import { lendingWorker } from './worker.js';

await runService(lendingWorker);
