import type { EventEnvelope } from '@nightporter/contracts';
import { NightporterError, type Clock, type Wakeup } from '@nightporter/protocol';
import { RolledBack } from './failure.js';
import type { Emit, EventHandler } from './handler-ports.js';

export interface HandlerRun<Session> {
  readonly handler: EventHandler<Session>;
  readonly event: EventEnvelope;
  readonly session: Session;
  readonly emit: Emit;
  readonly attempt: number;
  readonly limitMs: number;
  readonly clock: Clock;
  /** Rings when what still runs must be rolled back. */
  readonly rollBack: Wakeup;
}

/**
 * Runs a handler under its time limit. When the limit or a roll-back ends the wait, the signal aborts and the promise rejects;
 * what the handler still does then goes to a session that its transaction has ended, and to an emit that refuses. Emits that the
 * handler did not wait for are waited for here, so that none is lost or reaches into the next handler's turn; one that failed
 * fails the handler, even if the handler caught it.
 */
export async function runHandler<Session>(run: HandlerRun<Session>): Promise<void> {
  if (run.rollBack.rungForGood) throw new RolledBack();
  const { attempt, event, session } = run;
  const abort = new AbortController();
  const emits = guardEmit(run.emit, event);
  const work = async (): Promise<void> => {
    await run.handler({ event, session, emit: emits.emit, signal: abort.signal, attempt });
    emits.close();
    await emits.finished();
  };
  const interruption = interruptionOf(run, abort);
  try {
    await Promise.race([work(), interruption.happened]);
  } finally {
    interruption.forget();
    emits.close();
  }
}

/** Rejects when the time limit or a roll-back comes first; without either it stays pending and leaves no timer. */
function interruptionOf<Session>(
  { clock, event, limitMs, rollBack }: HandlerRun<Session>,
  abort: AbortController,
): { readonly happened: Promise<never>; forget(): void } {
  const detach: (() => void)[] = [];
  const happened = new Promise<never>((_resolve, reject) => {
    const interrupt = (error: Error): void => {
      abort.abort(error);
      reject(error);
    };
    const stopTimer = clock.after(limitMs, () => {
      interrupt(tooSlow(event, limitMs));
    });
    const stopListening = rollBack.onceRung(() => {
      interrupt(new RolledBack());
    });
    detach.push(stopTimer, stopListening);
  });
  return {
    happened,
    forget: () => {
      for (const undo of detach) undo();
    },
  };
}

function tooSlow(event: EventEnvelope, limitMs: number): NightporterError {
  return new NightporterError(
    'NP_HANDLER_FAILED',
    `The handler of ${event.eventType} ${event.eventId} ran longer than handlerMs (${limitMs} ms).`,
  );
}

interface GuardedEmit {
  readonly emit: Emit;
  finished(): Promise<void>;
  close(): void;
}

function guardEmit(emit: Emit, event: EventEnvelope): GuardedEmit {
  const pending = new Set<Promise<void>>();
  const failures: unknown[] = [];
  let isOpen = true;
  return {
    emit(request) {
      if (!isOpen) {
        const message = `emit(${request.eventType}) was called after the handler of ${event.eventId} had ended.`;
        return Promise.reject(new NightporterError('NP_NO_TRANSACTION', message));
      }
      const emitted = emit(request);
      pending.add(emitted);
      emitted.then(
        () => {
          pending.delete(emitted);
        },
        (error: unknown) => {
          pending.delete(emitted);
          failures.push(error);
        },
      );
      return emitted;
    },
    async finished() {
      await Promise.allSettled(pending);
      // Also one that the handler did not wait for, or caught: its effect must not commit without its event.
      if (failures.length > 0) throw failures[0];
    },
    close() {
      isOpen = false;
    },
  };
}
