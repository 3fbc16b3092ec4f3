/** What happened to an event, by time: pure. */
import type { OutboxDocument } from '@nightporter/contracts';
import type { OperatorActionDocument } from '@nightporter/mongo';
import type { Step } from './contract.js';
import type { GroupRecords } from './group-facts.js';

export function producerSteps(row: OutboxDocument, actions: readonly OperatorActionDocument[]): readonly Step[] {
  const { createdAt, lastError, nextRetryAt, publication, publishedAt, retryCount, status, updatedAt } = row;
  const steps: Step[] = [
    step(
      'created',
      createdAt,
      `${row.eventType} was written as version ${row.aggregateVersion}, with the business transaction`,
    ),
  ];
  for (const { action, at, by, reason } of actions) steps.push(step('operator', at, `${by}: ${action} (${reason})`));
  if (publication === null && retryCount > 0) {
    const next =
      status === 'FAILED' && nextRetryAt !== null ? `; the next attempt is at ${nextRetryAt.toISOString()}` : '';
    steps.push(
      step('failed', updatedAt, `${retryCount} attempts to send it failed: ${lastError ?? 'no reason is kept'}${next}`),
    );
  }
  if (publication !== null) {
    const { capturedAt, epoch, form, messageId, relay, topic } = publication;
    steps.push(step('captured', capturedAt, `relay ${relay} (epoch ${epoch}) read it`));
    const what = form === 'tombstone' ? 'a tombstone in its place was published' : 'it was published';
    steps.push(step('published', publishedAt, `${what} to ${topic} as message ${messageId}`));
  } else if (publishedAt !== null) {
    steps.push(step('published', publishedAt, 'it was published; to which message is not kept'));
  }
  return steps;
}

export function groupSteps(group: string, { actions, aside, inbox, parked }: GroupRecords): readonly Step[] {
  const of = (kind: Step['kind'], at: Date | null, text: string): Step => ({ at, group, kind, text });
  const steps = actions.map(({ action, at, by, reason }) => of('operator', at, `${by}: ${action} (${reason})`));
  if (parked !== null) {
    const { attempts, failure, firstFailedAt, lastFailedAt, nextRetryAt, parkedAt, state } = parked;
    steps.push(of('parked', parkedAt, `it was parked; now ${state}`));
    if (firstFailedAt !== null) steps.push(of('failed', firstFailedAt, `its first attempt failed`));
    const next = nextRetryAt === null ? '' : `; the next attempt is at ${nextRetryAt.toISOString()}`;
    if (failure !== null)
      steps.push(
        of('failed', lastFailedAt, `attempt ${attempts} failed with ${failure.code}: ${failure.message}${next}`),
      );
  }
  if (aside !== null) {
    const { count, failure, lastFailedAt, state } = aside;
    const times = count === 1 ? 'a message' : `a message that came ${count} times`;
    steps.push(of('set-aside', lastFailedAt, `${times} was set aside (${state}): ${failure.code}: ${failure.message}`));
  }
  if (inbox !== null) {
    const { attempts, duplicates, outcome, processedAt, receivedAt } = inbox;
    steps.push(of('received', receivedAt, 'the message that settled it was taken up'));
    steps.push(of('settled', processedAt, `it was ${outcome}${attempts > 1 ? ` at attempt ${attempts}` : ''}`));
    if (duplicates > 0) steps.push(of('repeated', null, `${duplicates} further deliveries had no effect`));
  }
  return steps;
}

function step(kind: Step['kind'], at: Date | null, text: string): Step {
  return { at, group: null, kind, text };
}

/** By time; a step without one stays behind the step that it follows. */
export function inOrder(steps: readonly Step[]): readonly Step[] {
  let last = 0;
  const dated = steps.map((entry, index) => {
    last = entry.at?.getTime() ?? last;
    return { entry, atMs: last, index };
  });
  return dated.sort((a, b) => a.atMs - b.atMs || a.index - b.index).map(({ entry }) => entry);
}
