import { expect, test } from 'vitest';
import { rocketMqConfig } from './config.js';
import { readVersion } from './prepare-rocketmq.js';

const ports = { nameServer: 1, proxy: 2, broker: 5, metrics: 6, unused: 7 };
const request = { folder: '/data', ports, brokerSettings: {}, proxySettings: {} };

test('every address in the configuration is the loopback interface', () => {
  const { nameServer, broker, proxy } = rocketMqConfig(request);
  const addresses = [nameServer, broker, proxy].flatMap((text) => text.match(/\d+\.\d+\.\d+\.\d+/g) ?? []);
  expect(new Set(addresses)).toEqual(new Set(['127.0.0.1']));
  expect(nameServer).toContain('bindAddress=127.0.0.1\nlistenPort=1\n');
  expect(broker).toContain('bindAddress=127.0.0.1\nlistenPort=5\n');
  expect(broker).toContain('metricsPromExporterHost=127.0.0.1\nmetricsPromExporterPort=6\n');
});

test('nothing is created that nobody asked for', () => {
  const { broker } = rocketMqConfig(request);
  expect(broker).toContain('autoCreateTopicEnable=false\n');
  expect(broker).toContain('autoCreateSubscriptionGroup=false\n');
});

test('settings that are asked for win', () => {
  const { broker, proxy } = rocketMqConfig({
    ...request,
    brokerSettings: { flushDiskType: 'SYNC_FLUSH' },
    proxySettings: { grpcServerPort: 9 },
  });
  expect(broker.match(/flushDiskType=.*/g)).toEqual(['flushDiskType=SYNC_FLUSH']);
  expect(JSON.parse(proxy)).toMatchObject({ grpcServerPort: 9, useEndpointPortFromRequest: true });
});

test('the version is read from the list of jars', () => {
  expect(readVersion('<properties><rocketmq.version>5.5.0</rocketmq.version></properties>')).toBe('5.5.0');
  expect(() => readVersion('<properties/>')).toThrow(/names no rocketmq\.version/);
});
