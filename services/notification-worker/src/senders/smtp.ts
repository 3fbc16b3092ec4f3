import { createTransport } from 'nodemailer';
import type { SendOutcome, Sender } from '../delivery/ports.js';
import { mailAddressOf } from './mail-address.js';

export interface SmtpOptions {
  /** `smtp://user:password@host:port`, or `smtps://`. */
  readonly url: string;
  readonly from: string;
  /** Completes recipients that are no mail addresses themselves. */
  readonly domain: string | null;
  readonly timeoutMs: number;
  readonly connectionsMax: number;
}

/** Sends each notification as a mail whose Message-ID is its key: mail programs show one of two copies. */
export function createSmtpSender({ url, from, domain, timeoutMs, connectionsMax }: SmtpOptions): Sender {
  const transport = createTransport({
    url,
    pool: true,
    maxConnections: connectionsMax,
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    // Nothing of a mail is ever read from a file or an address.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  const host = from.slice(from.lastIndexOf('@') + 1).replace(/[>\s]+$/, '');
  return {
    send: async ({ _id, recipient, occurredAt, subject, text }, signal) => {
      const to = mailAddressOf(recipient, domain);
      if (to === null) return { kind: 'permanent', reason: `${JSON.stringify(recipient)} is no mail address` };
      try {
        const { response } = await transport.sendMail({
          from,
          to: { name: '', address: to },
          subject,
          text,
          messageId: `<${_id}@${host}>`,
          date: new Date(occurredAt),
          // A mail whose time is up is sent again later: until then it must not go out of the pool's queue as well.
          signal,
        });
        return { kind: 'sent', receipt: response };
      } catch (error) {
        return smtpOutcome(error);
      }
    },
    close: () => {
      transport.close();
      return Promise.resolve();
    },
  };
}

/**
 * 5xx is about this mail only where it answers to its recipient or its content, in nodemailer's names for commands. A server that refuses
 * the connection, the log-in or the sender would refuse every other mail too, and can be mended.
 */
export function smtpOutcome(error: unknown): SendOutcome {
  const { command, responseCode, message } = error as { command?: unknown; responseCode?: unknown; message?: unknown };
  const reason = typeof message === 'string' ? message : String(error);
  const isAboutMail = command === 'RCPT TO' || command === 'DATA';
  // 530 asks for a log-in, at whichever command.
  const isPermanent = isAboutMail && typeof responseCode === 'number' && responseCode >= 500 && responseCode !== 530;
  return { kind: isPermanent ? 'permanent' : 'transient', reason };
}
