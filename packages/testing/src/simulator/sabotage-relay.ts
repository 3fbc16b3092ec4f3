import type { Capture, CaptureStream, RelayPorts } from '@nightporter/relay';
import { PublishError } from '@nightporter/relay';
import type { ResumeToken } from '@nightporter/protocol';
import type { Sabotage } from './sabotage.js';

export const RELAY_SABOTAGES: readonly Sabotage[] = [
  {
    name: 'blind-predecessor',
    removes: 'a version is sent only if the outbox shows no unsettled row below it (I4)',
    breaks: ['I4 order'],
    relay: (ports) => ({ ...ports, reader: { ...ports.reader, readLanes: () => Promise.resolve([]) } }),
  },
  {
    name: 'newest-token',
    removes: 'a saved token covers only what is settled or deferred (I5)',
    breaks: ['I5 checkpoint'],
    relay: (ports) => {
      const newest: { token: ResumeToken | null } = { token: null };
      const capture = spyOnTokens(ports.capture, newest);
      const { checkpoints } = ports;
      const save: typeof checkpoints.save = (request) =>
        checkpoints.save({ ...request, token: newest.token ?? request.token });
      return { ...ports, capture, checkpoints: { claim: (request) => checkpoints.claim(request), save } };
    },
  },
  {
    name: 'no-sweep-at-take-over',
    removes: 'every take-over sweeps before it saves any token',
    breaks: ['I5 checkpoint'],
    relay: (ports) => {
      let blindUntilMs = 0;
      const { reader, leases, clock } = ports;
      return {
        ...ports,
        leases: {
          release: (request) => leases.release(request),
          async acquire(request) {
            const outcome = await leases.acquire(request);
            if (outcome.kind === 'held' && outcome.takenOver) blindUntilMs = clock.now() + 2_000;
            return outcome;
          },
        },
        reader: {
          ...reader,
          readUnsettled: (request) =>
            clock.now() < blindUntilMs ? Promise.resolve([]) : reader.readUnsettled(request),
        },
      };
    },
  },
  {
    name: 'no-sweep',
    removes: 'the ledger decides what is unsettled, not the stream',
    breaks: ['I5 checkpoint'],
    relay: (ports) => ({ ...ports, reader: { ...ports.reader, readUnsettled: () => Promise.resolve([]) } }),
  },
  {
    name: 'unfenced-checkpoint',
    removes: 'a save is conditional on (epoch, seq) (I6)',
    breaks: ['I5 checkpoint'],
    relay: (ports, { database: { checkpoints } }) => {
      checkpoints.save = (request) => {
        checkpoints.overwrite(request);
        return 'saved';
      };
      return ports;
    },
  },
  {
    name: 'unawaited-send',
    removes: 'an event counts as published once the broker has stored it (I3)',
    breaks: ['PUBLISHED means that the broker has it'],
    relay: (ports) => ({
      ...ports,
      publisher: {
        publish(request) {
          ports.publisher.publish(request).catch(() => undefined);
          return Promise.resolve({ messageId: 'unknown' });
        },
      },
    }),
  },
  {
    name: 'charged-outage',
    removes: 'an event is not charged for a broker that does not answer (I3)',
    breaks: ['I3 no loss'],
    relay: (ports) => ({
      ...ports,
      publisher: {
        publish: (request) =>
          ports.publisher.publish(request).catch((error: unknown) => {
            throw error instanceof PublishError
              ? new PublishError({ failure: 'permanent', answered: error.answered, message: error.message })
              : error;
          }),
      },
    }),
  },
  {
    name: 'forgetful-marks',
    removes: 'a mark that got no answer is repeated until it has one',
    breaks: ['I5 checkpoint'],
    relay: (ports) => ({
      ...ports,
      marker: {
        mark: (marks) => ports.marker.mark(marks).catch(() => marks.map(() => ({ kind: 'done' }) as const)),
      },
    }),
  },
  {
    name: 'unconditional-claim',
    removes: 'a row is claimed only as it was read',
    breaks: ['PUBLISHED always wins'],
    relay: (ports, { database: { outbox } }) => ({
      ...ports,
      marker: {
        async mark(marks) {
          const outcomes = await ports.marker.mark(marks);
          return outcomes.map((outcome, index) => {
            const mark = marks[index];
            if (mark?.kind !== 'claimed' || outcome.kind !== 'refused') return outcome;
            outbox.claimAnyway(mark.eventId, mark.relay);
            return { kind: 'done' } as const;
          });
        },
      },
    }),
  },
  {
    name: 'lost-stream-hushed-up',
    removes: 'a stream that cannot be resumed is followed by a sweep before any token is saved',
    breaks: ['I5 checkpoint'],
    relay: (ports) => ({ ...ports, capture: reopeningQuietly(ports) }),
  },
];

function spyOnTokens(capture: Capture, newest: { token: ResumeToken | null }): Capture {
  return {
    async open(request) {
      const stream = await capture.open(request);
      return {
        ...stream,
        async read() {
          const batch = await stream.read();
          newest.token = batch.token ?? newest.token;
          return batch;
        },
      };
    },
  };
}

/** In place of the stream that was lost, another one that starts now. */
function reopeningQuietly({ capture }: RelayPorts): Capture {
  return {
    async open(request) {
      const fresh = { ...request, after: null };
      let stream: CaptureStream = await capture.open(request).catch(() => capture.open(fresh));
      return {
        async read() {
          try {
            return await stream.read();
          } catch {
            stream = await capture.open(fresh);
            return stream.read();
          }
        },
        close: () => stream.close(),
      };
    },
  };
}
