import { describe, expect, it } from 'vitest';
import { brokerConnection } from './broker-connection.js';
import { createLogger } from './logger.js';

const logger = createLogger({ name: 'test', level: 'silent' });
const plain = {
  rocketmqEndpoints: 'h:1',
  rocketmqAccessKey: null,
  rocketmqSecretKey: null,
  rocketmqTls: false,
  rocketmqAlwaysUseEndpoints: false,
};

describe('the connection to the broker', () => {
  it('has credentials only where the settings have both parts', () => {
    expect(brokerConnection(plain, logger)).not.toHaveProperty('credentials');
    const both = { ...plain, rocketmqAccessKey: 'a', rocketmqSecretKey: 's' };
    expect(brokerConnection(both, logger).credentials).toEqual({ accessKey: 'a', accessSecret: 's' });
  });

  it.each([{ rocketmqAccessKey: 'a' }, { rocketmqSecretKey: 's' }])('refuses half of the credentials: %o', (half) => {
    expect(() => brokerConnection({ ...plain, ...half }, logger)).toThrow('set both or neither');
  });
});
