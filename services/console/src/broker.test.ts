import { createLogger, loadConfig } from '@nightporter/runtime';
import { describe, expect, it } from 'vitest';
import { brokerOf, brokerSettings } from './broker.js';

const logger = createLogger({ name: 'test', level: 'silent' });
const brokerIn = (environment: Readonly<Record<string, string>>) =>
  brokerOf(loadConfig(brokerSettings, environment), logger);

describe('the broker of the console', () => {
  it.each([[{}], [{ ROCKETMQ_ENDPOINTS: '' }]])('is none with %o', (environment) => {
    expect(brokerIn(environment)).toBeNull();
  });

  it('is asked where its proxy is named', () => {
    expect(brokerIn({ ROCKETMQ_ENDPOINTS: '127.0.0.1:8081', ROCKETMQ_TLS: 'true' })).not.toBeNull();
  });

  it.each([
    [{ ROCKETMQ_ENDPOINTS: 'no port' }, /ROCKETMQ_ENDPOINTS/],
    [{ ROCKETMQ_ACCESS_KEY: 'alone' }, /ROCKETMQ_ACCESS_KEY and ROCKETMQ_SECRET_KEY go together/],
  ])('is refused at the start with %o', (environment, message) => {
    expect(() => brokerIn(environment)).toThrow(message);
  });
});
