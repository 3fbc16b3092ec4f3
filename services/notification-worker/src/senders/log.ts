import type { Logger } from '@nightporter/runtime';
import type { Sender } from '../delivery/ports.js';

/** Writes each notification into the log: to see the example work, and where another program reads the log. */
export function createLogSender(logger: Logger): Sender {
  return {
    send: ({ _id: idempotencyKey, recipient, orderId, subject }) => {
      logger.info({ idempotencyKey, recipient, orderId, subject }, 'notification');
      return Promise.resolve({ kind: 'sent', receipt: null });
    },
    close: () => Promise.resolve(),
  };
}
