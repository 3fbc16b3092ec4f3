import { runService } from '@nightporter/runtime';
import { createPointsWorker } from './service.js';

await runService(createPointsWorker());
