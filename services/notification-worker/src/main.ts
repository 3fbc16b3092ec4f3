import { runService } from '@nightporter/runtime';
import { createNotificationWorker } from './service.js';

await runService(createNotificationWorker());
