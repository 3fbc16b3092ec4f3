import { runService } from '@nightporter/runtime';
import { loyaltyWorker } from './worker.js';

await runService(loyaltyWorker);
