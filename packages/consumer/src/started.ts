import { sleep } from '@nightporter/protocol';
import { storeFailed, type Engine } from './engine.js';
import type { Work } from './incoming.js';

/** A record stands for one batch, so whatever runs batches has a number of its own: first the receive loops, then the lanes of a history. */
export function loopOfLane<Session>({ options, ports }: Engine<Session>, lane: number): number {
  return ports.subscribers.length * options.receiveLoops + lane;
}

/** Behind the lanes of a history, of which there are as many as receive loops of a topic. */
export function loopOfClaim<Session>(engine: Engine<Session>, slot: number): number {
  return loopOfLane(engine, engine.options.receiveLoops) + slot;
}

/**
 * Puts on record which events are about to run here, before any of them does, and marks as suspect those that are on
 * record of another process: one of them may have ended it. The broker's delivery count cannot tell that alone, for it may start anew
 * when messages join a redelivered batch. Null when the consumer stops before the record is made.
 */
export async function beginBatch<Session>(
  engine: Engine<Session>,
  loop: number,
  works: readonly Work[],
): Promise<readonly Work[] | null> {
  const { circuit, options, owner, ports, rollBack, stopping } = engine;
  const events = works.flatMap((work) => (runsHandler(work) ? [work.event.envelope.eventId] : []));
  if (ports.started === undefined || events.length === 0) return works;
  for (;;) {
    await circuit.whenClosed(stopping);
    if (rollBack.rungForGood) return null;
    try {
      const elsewhere = new Set(await ports.started.begin({ owner, loop, events }));
      circuit.succeeded();
      return works.map((work) =>
        work.kind === 'event' && elsewhere.has(work.event.envelope.eventId) ? { ...work, isSuspect: true } : work,
      );
    } catch (error) {
      storeFailed(engine, 'begin', error);
    }
    if (stopping.rungForGood) return null;
    await sleep(ports.clock, options.conflictFirstMs, stopping);
  }
}

function runsHandler(work: Work): work is Extract<Work, { kind: 'event' }> {
  return work.kind === 'event' && work.content.kind === 'event';
}
