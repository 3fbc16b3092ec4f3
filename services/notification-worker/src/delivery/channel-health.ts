import type { Logger } from '@nightporter/runtime';
import type { Channel } from '../domain/notice.js';
import type { SendOutcome } from './ports.js';

/** So many in a row, and it is the channel rather than the notifications. */
const FAILURES_TO_BE_DOWN = 5;
/** Of failures in a row, one in so many is told; the first one always. */
const TELL_EVERY = 100;

/** How each channel does: a transient failure in a row counts; whatever the receiver decides on shows that it is there. */
export class ChannelHealth {
  readonly #logger: Logger;
  readonly #failing = new Map<Channel, { readonly inRow: number; readonly reason: string }>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  heard(channel: Channel, outcome: SendOutcome): void {
    const before = this.#failing.get(channel)?.inRow ?? 0;
    if (outcome.kind !== 'transient') {
      this.#failing.delete(channel);
      if (before > 0) this.#logger.info({ channel, failures: before }, 'channel takes notifications again');
      return;
    }
    this.#failing.set(channel, { inRow: before + 1, reason: outcome.reason });
    if (before % TELL_EVERY === 0)
      this.#logger.warn(
        { channel, failures: before + 1, reason: outcome.reason },
        'sending failed; trying again later',
      );
  }

  /** Null while no channel is down. */
  reason(): string | null {
    const down = [...this.#failing].filter(([, { inRow }]) => inRow >= FAILURES_TO_BE_DOWN);
    if (down.length === 0) return null;
    return down
      .map(
        ([channel, { inRow, reason }]) =>
          `${inRow} sends in a row by ${channel} have failed, the last because: ${reason}`,
      )
      .join('; ');
  }
}
