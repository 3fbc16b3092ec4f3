import { runService } from '@nightporter/runtime';
import { ordersApi } from './service.js';

await runService(ordersApi);
