import { sleep } from '@nightporter/protocol';
import type { CopyPorts } from './copy-ports.js';
import type { Engine } from './engine.js';
import { classify } from './failure.js';

/**
 * Sends copies of dead letters to whoever else wants to know of them: at least once, and beside everything else, so that nothing waits for
 * it and nothing is charged. A copy that cannot be sent stays claimed for a while, so that the next one has its turn.
 */
export async function copyLoop<Session>(engine: Engine<Session>): Promise<void> {
  const { circuit, options, ports, stopping } = engine;
  const { deadLetterCopies } = ports;
  if (deadLetterCopies === undefined) return;
  while (await circuit.whenClosed(stopping)) {
    const isSent = await copyOne(engine, deadLetterCopies);
    if (!isSent) await sleep(ports.clock, options.copyEveryMs, stopping);
  }
}

/** True when there was one, and it is sent. */
async function copyOne<Session>(engine: Engine<Session>, { copies, sender }: CopyPorts): Promise<boolean> {
  try {
    const copy = await copies.claim(engine.options.copyClaimMs);
    if (copy === null) return false;
    await sender.send(copy);
    engine.tell({ kind: 'dead-letter-copied', event: copy.event });
    await copies.done(copy.id);
    return true;
  } catch (error) {
    if (classify(error) === 'broken') throw error;
    engine.tell({ kind: 'dead-letter-not-copied', error });
    return false;
  }
}
