import { gzipSync } from 'node:zlib';
import { MessageView } from 'rocketmq-client-nodejs';
import definition from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/definition_pb.js';
import { expect, it } from 'vitest';
import { makeReadable } from './received-message.js';

const { Digest, Encoding, Message, Resource, SystemProperties } = definition;

function message(body: Uint8Array, properties = new SystemProperties().setBodyDigest(new Digest())) {
  return new Message().setTopic(new Resource().setName('t')).setBody(body).setSystemProperties(properties);
}

it('A message that the client can read stays as it is', () => {
  const plain = message(Buffer.from('{}'));
  const before = plain.serializeBinary();
  makeReadable(plain);
  expect(plain.serializeBinary()).toEqual(before);
});

it('A compressed body is inflated', () => {
  const compressed = message(gzipSync('{"a":1}'));
  compressed.getSystemProperties()?.setBodyEncoding(Encoding.GZIP);
  makeReadable(compressed);
  expect(new MessageView(compressed).body.toString()).toBe('{"a":1}');
});

it.each<[string, () => Uint8Array]>([
  ['that is not gzip', () => Buffer.from('x\u009c not gzip')],
  ['that would fill the memory', () => gzipSync(Buffer.alloc(64 * 1024 * 1024))],
])('A compressed body %s is handed on as it came, where the client would lose the whole result', (_what, bytes) => {
  const body = bytes();
  const poison = message(body);
  poison.getSystemProperties()?.setBodyEncoding(Encoding.GZIP);
  makeReadable(poison);
  expect(Buffer.compare(new MessageView(poison).body, body)).toBe(0);
});

it('A message without body digest, topic or properties is handed on, where the client would throw', () => {
  const bare = new Message().setBody(Buffer.from('{}'));
  expect(() => new MessageView(bare)).toThrow();
  makeReadable(bare);
  expect(new MessageView(bare).body.toString()).toBe('{}');
  const withoutDigest = message(Buffer.from('{}'), new SystemProperties());
  makeReadable(withoutDigest);
  expect(new MessageView(withoutDigest).body.toString()).toBe('{}');
});
