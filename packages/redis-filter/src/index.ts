export { createRedisFilter, type RedisFilter, type RedisFilterOptions } from './redis-filter.js';
