import { PassThrough } from 'node:stream';
import service from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/service_pb.js';
import { expect, it } from 'vitest';
import { GuardedTelemetryStream, type RawTelemetryStream } from './telemetry-stream.js';

const command = new service.TelemetryCommand();

function guarded(): { raw: PassThrough; stream: GuardedTelemetryStream; faults: unknown[] } {
  const raw = new PassThrough({ objectMode: true });
  const faults: unknown[] = [];
  const stream = new GuardedTelemetryStream(raw as unknown as RawTelemetryStream, (error) => faults.push(error));
  return { raw, stream, faults };
}

it('Commands, errors and the end reach the listeners', () => {
  const { raw, stream } = guarded();
  const seen: unknown[] = [];
  stream.on('data', (data) => seen.push(data));
  stream.once('error', (error: Error) => seen.push(error.message));
  raw.emit('data', command);
  raw.emit('error', new Error('14'));
  expect(seen).toEqual([command, '14']);
});

it('An error that comes after the client has let go of the stream ends here', () => {
  const { raw, stream } = guarded();
  stream.on('error', () => expect.unreachable());
  stream.removeAllListeners();
  expect(() => raw.emit('error', new Error('1 CANCELLED'))).not.toThrow();
});

it('An exception of a handler is told, and does not reach the stream', () => {
  const { raw, stream, faults } = guarded();
  stream.on('data', () => {
    throw new Error('handler');
  });
  expect(() => raw.emit('data', command)).not.toThrow();
  expect(faults).toEqual([new Error('handler')]);
});

it('Without a stream it takes commands and never answers', () => {
  const stream = new GuardedTelemetryStream(null, () => expect.unreachable());
  expect(stream.write(command)).toBe(false);
  expect(() => stream.end()).not.toThrow();
});
