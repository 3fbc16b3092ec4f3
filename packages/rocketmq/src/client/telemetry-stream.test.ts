import { PassThrough } from 'node:stream';
import definition from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/definition_pb.js';
import service, { type TelemetryCommand } from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/service_pb.js';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { TelemetryStream, type RawTelemetryStream } from './telemetry-stream.js';

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

const settings = new service.TelemetryCommand().setSettings(new definition.Settings());

/** Stands for a gRPC stream: what is written is kept, and a test emits what the proxy would. */
class FakeStream extends PassThrough {
  readonly written: TelemetryCommand[] = [];
  ended = false;
  override write(command: TelemetryCommand): boolean {
    this.written.push(command);
    return true;
  }
  override end(): this {
    this.ended = true;
    return this;
  }
}

function opened(): { raws: FakeStream[]; stream: TelemetryStream; faults: unknown[] } {
  const raws: FakeStream[] = [];
  const faults: unknown[] = [];
  const stream = new TelemetryStream({
    open: () => {
      raws.push(new FakeStream({ objectMode: true }));
      return raws.at(-1) as unknown as RawTelemetryStream;
    },
    renewAfterMs: 5,
    onFault: (error) => faults.push(error),
  });
  return { raws, stream, faults };
}

it('Commands pass in both directions', () => {
  const { raws, stream } = opened();
  const seen: unknown[] = [];
  stream.on('data', (command) => seen.push(command));
  stream.write(settings);
  raws[0]!.emit('data', settings);
  expect(raws[0]!.written).toEqual([settings]);
  expect(seen).toEqual([settings]);
});

it.each(['error', 'end'])(
  'A stream lost by %s is opened anew, with the last settings, and the client is told nothing',
  async (event) => {
    const { raws, stream } = opened();
    stream.on('error', () => expect.unreachable());
    stream.on('end', () => expect.unreachable());
    stream.write(settings);
    raws[0]!.emit(event, new Error('14 UNAVAILABLE'));
    await vi.waitFor(() => {
      expect(raws[1]?.written).toEqual([settings]);
    });
    const seen: unknown[] = [];
    stream.on('data', (command) => seen.push(command));
    raws[1]!.emit('data', settings);
    expect(seen).toEqual([settings]);
    stream.end();
  },
);

it('A loss that is reported twice is renewed once', async () => {
  const { raws, stream } = opened();
  raws[0]!.emit('error', new Error('14 UNAVAILABLE'));
  raws[0]!.emit('end');
  await vi.waitFor(() => {
    expect(raws).toHaveLength(2);
  });
  await vi.advanceTimersByTimeAsync(1_000);
  expect(raws).toHaveLength(2);
  stream.end();
});

it('An error that comes after the client has let go of the stream ends here, and renews nothing', async () => {
  const { raws, stream } = opened();
  stream.end();
  stream.removeAllListeners();
  expect(raws[0]!.ended).toBe(true);
  expect(() => raws[0]!.emit('error', new Error('1 CANCELLED'))).not.toThrow();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(raws).toHaveLength(1);
});

it('An end while a renewal is due renews nothing', async () => {
  const { raws, stream } = opened();
  raws[0]!.emit('error', new Error('14 UNAVAILABLE'));
  stream.end();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(raws).toHaveLength(1);
});

it('An exception of a handler is told, and does not reach gRPC', () => {
  const { raws, stream, faults } = opened();
  stream.on('data', () => {
    throw new Error('handler');
  });
  expect(() => raws[0]!.emit('data', settings)).not.toThrow();
  expect(faults).toEqual([new Error('handler')]);
});

it('Once the transport is closed it takes commands and never answers', () => {
  const stream = new TelemetryStream({ open: () => null, renewAfterMs: 5, onFault: () => expect.unreachable() });
  expect(stream.write(settings)).toBe(false);
  expect(() => stream.end()).not.toThrow();
});
