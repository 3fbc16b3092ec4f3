import { Command } from 'commander';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { brokerConnectionOf, withBroker, type BrokerFlags } from './broker.js';

afterEach(() => {
  vi.unstubAllEnvs();
});

function flagsOf(args: readonly string[], environment: Readonly<Record<string, string>> = {}): BrokerFlags {
  for (const name of ['ENDPOINTS', 'ACCESS_KEY', 'SECRET_KEY', 'TLS', 'ALWAYS_USE_ENDPOINTS'])
    vi.stubEnv(`ROCKETMQ_${name}`, environment[`ROCKETMQ_${name}`]);
  const command = withBroker(new Command('doctor')).exitOverride();
  command.configureOutput({ writeErr: () => undefined });
  return command.parse([...args], { from: 'user' }).opts();
}

const endpoints = '127.0.0.1:8081';

describe('the broker of a command', () => {
  it('is none where nothing names one', () => {
    expect(brokerConnectionOf(flagsOf([]))).toBeNull();
    expect(brokerConnectionOf(flagsOf(['--rocketmq-endpoints', '']))).toBeNull();
  });

  it('is reached in plain text and without credentials where nothing else is said', () => {
    const plain = { endpoints, tls: false, alwaysUseEndpoints: false };
    expect(brokerConnectionOf(flagsOf(['--rocketmq-endpoints', endpoints]))).toEqual(plain);
    const said = {
      ROCKETMQ_ENDPOINTS: endpoints,
      ROCKETMQ_TLS: 'false',
      ROCKETMQ_ACCESS_KEY: '',
      ROCKETMQ_SECRET_KEY: '',
    };
    expect(brokerConnectionOf(flagsOf([], said))).toEqual(plain);
  });

  it('is reached by TLS and with credentials by the variables that relay and workers read', () => {
    const environment = {
      ROCKETMQ_ENDPOINTS: endpoints,
      ROCKETMQ_TLS: 'true',
      ROCKETMQ_ALWAYS_USE_ENDPOINTS: 'true',
      ROCKETMQ_ACCESS_KEY: 'operator',
      ROCKETMQ_SECRET_KEY: 'a-secret',
    };
    expect(brokerConnectionOf(flagsOf([], environment))).toEqual({
      endpoints,
      tls: true,
      alwaysUseEndpoints: true,
      credentials: { accessKey: 'operator', accessSecret: 'a-secret' },
    });
  });

  it.each([['ACCESS'], ['SECRET']])('is refused with half a credential, the %s key', (half) => {
    const flags = flagsOf([], { ROCKETMQ_ENDPOINTS: endpoints, [`ROCKETMQ_${half}_KEY`]: 'alone' });
    expect(() => brokerConnectionOf(flags)).toThrow(/--rocketmq-access-key and --rocketmq-secret-key, or neither/);
  });

  it('is refused where TLS is neither true nor false', () => {
    expect(() => flagsOf([], { ROCKETMQ_TLS: 'yes' })).toThrow(/ROCKETMQ_TLS/);
  });
});
