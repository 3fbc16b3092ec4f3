import { runService } from '@nightporter/runtime';
import { createShippingWorker } from './service.js';

await runService(createShippingWorker());
