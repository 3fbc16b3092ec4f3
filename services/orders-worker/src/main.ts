import { runService } from '@nightporter/runtime';
import { createOrdersWorker } from './service.js';

await runService(createOrdersWorker());
