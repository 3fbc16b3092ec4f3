import { Writable } from 'node:stream';
import { expect, it, vi } from 'vitest';
import { follow } from './follow.js';

/** A reader that takes each message when it is asked to, or never. */
function reader(take: 'at-once' | 'never') {
  const told: string[] = [];
  const raw = new Writable({
    highWaterMark: 1,
    write(chunk: Buffer, _encoding, taken) {
      told.push(chunk.toString());
      if (take === 'at-once') taken();
    },
  });
  const controller = new AbortController();
  raw.once('close', () => {
    controller.abort();
  });
  return { raw, told, controller };
}

it('whoever reads is told all news, however often the stream is full', async () => {
  const { controller, raw, told } = reader('at-once');
  let looks = 0;
  const news = (): Promise<string> => {
    looks += 1;
    if (looks === 3) controller.abort();
    return Promise.resolve(`news ${looks}`);
  };
  await follow({ raw, signal: controller.signal, news, everyMs: 1 });
  expect(told).toEqual(['news 1', 'news 2', 'news 3']);
  expect(raw.destroyed).toBe(false);
});

it('whoever does not read is let go, and nothing more is kept for him', async () => {
  const { controller, raw, told } = reader('never');
  const news = vi.fn(() => Promise.resolve('news'));
  await follow({ raw, signal: controller.signal, news, everyMs: 1, drainMs: 20 });
  expect(raw.destroyed).toBe(true);
  expect(told).toEqual(['news']);
  expect(news).toHaveBeenCalledTimes(1);
});

it('nothing is written to a stream that has ended while the news was looked for', async () => {
  const { controller, raw } = reader('at-once');
  const failed = vi.fn();
  raw.on('error', failed);
  const news = (): Promise<string> => {
    raw.end();
    controller.abort();
    return Promise.resolve('too late');
  };
  await follow({ raw, signal: controller.signal, news, everyMs: 1 });
  await new Promise((resolve) => setImmediate(resolve));
  expect(failed).not.toHaveBeenCalled();
});
