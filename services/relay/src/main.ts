import { runService } from '@nightporter/runtime';
import { relayService } from './service.js';

await runService(relayService);
