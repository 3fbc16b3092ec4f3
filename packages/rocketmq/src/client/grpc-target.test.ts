import { expect, it } from 'vitest';
import { assertEndpoints, grpcTarget } from './grpc-target.js';

it('One address is dialled as it is', () => {
  expect(grpcTarget([{ host: 'proxy.local', port: 8081 }])).toBe('proxy.local:8081');
  expect(grpcTarget([{ host: '127.0.0.1', port: 8081 }])).toBe('127.0.0.1:8081');
  expect(grpcTarget([{ host: '::1', port: 8081 }])).toBe('ipv6:[::1]:8081');
});

it('Several IP addresses become one target with fail-over', () => {
  const addresses = [
    { host: '10.0.0.1', port: 8081 },
    { host: '10.0.0.2', port: 8082 },
  ];
  expect(grpcTarget(addresses)).toBe('ipv4:10.0.0.1:8081,10.0.0.2:8082');
});

it.each([
  '',
  'proxy',
  'proxy:',
  ':8081',
  'proxy:0',
  'proxy:65536',
  'proxy:80x',
  'http://proxy:8081',
  'a:1;b:2',
  'a:1,b:2',
  'a:1;',
])('The endpoints %j are refused, where the client would dial port 80 or a name that does not exist', (endpoints) => {
  expect(() => {
    assertEndpoints(endpoints);
  }).toThrow(/RocketMQ endpoints are/);
});

it.each(['proxy.local:8081', '127.0.0.1:8081', '127.0.0.1:8081;127.0.0.2:8081'])(
  'The endpoints %j are accepted',
  (endpoints) => {
    expect(() => {
      assertEndpoints(endpoints);
    }).not.toThrow();
  },
);
