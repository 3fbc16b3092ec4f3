import { runService } from '@nightporter/runtime';
import { createInventoryWorker } from './service.js';

await runService(createInventoryWorker());
