import { describe, expect, it } from 'vitest';
import { judgeGroup, judgeTopic, type QueueAnswer } from './preflight-verdict.js';

const fifo: QueueAnswer = { broker: 'a', usable: true, types: ['FIFO'] };

describe('a topic', () => {
  it('is ready when every queue takes FIFO messages; the queues of all brokers count', () => {
    expect(judgeTopic({ kind: 'route', queues: [fifo, fifo, { ...fifo, broker: 'b' }] })).toEqual({
      kind: 'ready',
      queueCount: 3,
    });
    const mixed = { ...fifo, types: ['NORMAL', 'FIFO', 'DELAY', 'TRANSACTION'] };
    expect(judgeTopic({ kind: 'route', queues: [mixed] })).toEqual({ kind: 'ready', queueCount: 1 });
  });

  it('is missing without a route, or with an empty one', () => {
    expect(judgeTopic({ kind: 'missing' })).toEqual({ kind: 'missing' });
    expect(judgeTopic({ kind: 'route', queues: [] })).toEqual({ kind: 'missing' });
  });

  it('is of the wrong type when one broker of several does not take FIFO messages', () => {
    const normal = { broker: 'b', usable: true, types: ['NORMAL'] };
    expect(judgeTopic({ kind: 'route', queues: [fifo, normal, normal] })).toEqual({
      kind: 'wrong-type',
      types: ['NORMAL'],
      queuesPerBroker: 2,
    });
  });

  it('is of the wrong type when it has none at all', () => {
    expect(judgeTopic({ kind: 'route', queues: [{ ...fifo, types: [] }] })).toMatchObject({ kind: 'wrong-type' });
  });

  it('is unusable when no queue can be both read and written', () => {
    expect(judgeTopic({ kind: 'route', queues: [{ ...fifo, usable: false }] })).toEqual({
      kind: 'unusable',
      queuesPerBroker: 1,
    });
  });
});

describe('a group', () => {
  it('is ready when it is ordered and redelivers often enough', () => {
    expect(judgeGroup({ kind: 'settings', ordered: true, retryTimesMax: 100 }, 100)).toEqual({
      kind: 'ready',
      retryTimesMax: 100,
    });
  });

  it('is refused when it is missing', () => {
    expect(judgeGroup({ kind: 'missing' }, 100)).toEqual({ kind: 'missing' });
  });

  it('is refused when it reads out of order, whatever else is wrong', () => {
    expect(judgeGroup({ kind: 'settings', ordered: false, retryTimesMax: -1 }, 100)).toMatchObject({
      kind: 'unordered',
    });
  });

  it.each([-1, 0, 99])('is refused when it redelivers %i times', (retryTimesMax) => {
    expect(judgeGroup({ kind: 'settings', ordered: true, retryTimesMax }, 100)).toEqual({
      kind: 'few-retries',
      retryTimesMax,
    });
  });
});
