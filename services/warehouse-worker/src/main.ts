import { runService } from '@nightporter/runtime';
import { createWarehouseWorker } from './service.js';

await runService(createWarehouseWorker());
