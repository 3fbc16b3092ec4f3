import { format } from 'node:util';
import type { ILogger } from 'rocketmq-client-nodejs';
import type { ClientLog } from '../options.js';

/**
 * The logger that every client gets. All four levels must be there: a client without logger, or in places without `debug`, opens
 * a log file under the home folder.
 */
export function clientLogger(log: ClientLog | undefined): Required<Omit<ILogger, 'close'>> {
  const at =
    (level: Parameters<ClientLog>[0]) =>
    (...values: unknown[]): void => {
      if (log !== undefined) log(level, format(...values));
    };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}
