import { epoch, eventId, namespace } from '@nightporter/protocol';
import type { Mark } from '@nightporter/relay';
import { describe, expect, it } from 'vitest';
import { outcomeOf } from './outbox-marker.js';

const target = { namespace: namespace('orders.outbox'), eventId: eventId('e'), relay: 'relay 1', epoch: epoch(1) };
const published: Mark = {
  ...target,
  kind: 'published',
  messageId: 'm',
  topic: 'orders-events',
  form: 'original',
  sinceCaptureMs: 1,
};
const failed: Mark = {
  ...target,
  kind: 'failed',
  revision: 4,
  status: 'FAILED',
  retryCount: 2,
  retryInMs: 1_000,
  error: 'too large',
};
const unanswered: Mark = { ...target, kind: 'unanswered', revision: 4 };

type Standing = NonNullable<Parameters<typeof outcomeOf>[1]>;
const row: Standing = { _id: eventId('e'), status: 'PENDING', revision: 4, retryCount: 1, unanswered: false };

describe('the outcome of a mark, by how the row stands', () => {
  it.each<[string, Mark, Partial<Standing>, 'done' | 'refused']>([
    ['published, by whomever', published, { status: 'PUBLISHED', revision: 9 }, 'done'],
    ['not published after all', published, { status: 'DEAD' }, 'refused'],
    ['failed as marked', failed, { status: 'FAILED', revision: 5, retryCount: 2 }, 'done'],
    ['failed, and changed since', failed, { status: 'FAILED', revision: 6, retryCount: 2 }, 'refused'],
    ['failed another time', failed, { status: 'FAILED', revision: 5, retryCount: 1 }, 'refused'],
    ['dead instead', failed, { status: 'DEAD', revision: 5, retryCount: 2 }, 'refused'],
    ['published instead', failed, { status: 'PUBLISHED', revision: 5, retryCount: 2 }, 'refused'],
    ['unanswered as marked', unanswered, { unanswered: true, revision: 5 }, 'done'],
    ['unanswered, and changed since', unanswered, { unanswered: true, revision: 6 }, 'refused'],
    ['unanswered, and published since', unanswered, { unanswered: true, revision: 5, status: 'PUBLISHED' }, 'refused'],
    ['unchanged', unanswered, {}, 'refused'],
  ])('%s', (_name, mark, standing, kind) => {
    const current = { ...row, ...standing };
    expect(outcomeOf(mark, current)).toEqual(kind === 'done' ? { kind } : { kind, status: current.status });
  });

  it('is missing where there is no row', () => {
    expect(outcomeOf(published, undefined)).toEqual({ kind: 'missing' });
  });
});
