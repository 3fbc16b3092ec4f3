import { within } from './time-limit.js';
import type { Transport } from './transport.js';

/** What starting and stopping need of a client. */
export interface LifecycleClient {
  readonly transport: Transport;
  startup(): Promise<void>;
  shutdown(): Promise<void>;
}

/**
 * Starts a client within a limit. When that fails, the client is shut down, so that no timer and no connection of it remains, and
 * the reason is thrown: the proxy's refusal where there is one. `check` throws when what was started is of no use.
 */
export async function startWithin(
  client: LifecycleClient,
  limitMs: number,
  check: () => void = () => undefined,
): Promise<void> {
  const startup = client.startup();
  // A start that has been given up may still fail later; its reason is of no use then.
  startup.catch(() => undefined);
  try {
    await within(Promise.race([startup, client.transport.ended]), limitMs);
    check();
  } catch (error) {
    await stopWithin(client, limitMs);
    throw error;
  }
}

/** Shuts a client down within a limit, and in any case closes its connections. Never rejects; returns what went wrong. */
export async function stopWithin(client: LifecycleClient, limitMs: number): Promise<unknown> {
  try {
    await within(client.shutdown(), limitMs);
    return null;
  } catch (error) {
    return error;
  } finally {
    client.transport.close();
  }
}
