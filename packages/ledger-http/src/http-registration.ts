import { aggregateVersion, type AggregateKey, type AggregateVersion } from '@nightporter/protocol';
import type { z } from 'zod';
import { known } from './http-ledger.js';
import { createLedgerClient, type LedgerServer } from './ledger-client.js';
import { HEADS_MAX, done, headsAnswer, registerAnswer } from './wire.js';

/** Where a group starts in one aggregate: with the version behind this one. */
export interface RemoteStart {
  readonly aggregate: AggregateKey;
  readonly version: AggregateVersion;
  readonly startReason?: 'unavailable';
}

export interface HttpRegistration extends LedgerServer {
  readonly group: string;
  readonly topics: readonly string[];
  readonly from: 'beginning' | 'now';
  readonly unavailable: 'refuse' | 'accept';
  /**
   * Sets positions of the group in its own database, one page after another; called again from the first page after a crash. `key` names this
   * registration. A page must have no effect once `finish` was called with the same key, by whichever member, and a position that is there stays.
   */
  readonly positions: {
    set(key: string, starts: readonly RemoteStart[]): Promise<void>;
    finish(key: string): Promise<void>;
  };
}

/**
 * Names a group in the `groups` of a producer whose database it may not touch, and sets the positions that it starts with. Safe at every start of every
 * member; receive only afterwards. Tells which topics the entry no longer has. Rejects as registering in the database does, and with NP_CONFIG_INVALID where the token is refused.
 */
export async function registerOverHttp(
  registration: HttpRegistration,
): Promise<{ readonly topicsRemoved: readonly string[] }> {
  const { from, group, positions, topics, unavailable } = registration;
  const client = createLedgerClient(registration);
  const path = `/groups/${encodeURIComponent(group)}`;
  const body = { topics: [...topics], from, unavailable };
  const { starting, topicsRemoved = [] } = known(
    await client(`registering group ${group}`, { method: 'PUT', path, body, answer: registerAnswer }),
  );
  if (starting === null) return { topicsRemoved };
  const key = `${registration.producer} ${starting.sinceMs}`;
  const operation = `setting the positions of group ${group}`;
  for (let behind: string | null = ''; behind !== null;) {
    const request = { behind, limit: HEADS_MAX, starts: starting.starts };
    const page: z.infer<typeof headsAnswer> = known(
      await client(operation, { method: 'POST', path: '/ledger/heads', body: request, answer: headsAnswer }),
    );
    const reason = starting.starts === 'behind-deleted' ? ({ startReason: 'unavailable' } as const) : {};
    await positions.set(
      key,
      page.starts.map(({ aggregate, version }) => ({
        aggregate: aggregate as AggregateKey,
        version: aggregateVersion(version),
        ...reason,
      })),
    );
    behind = page.next;
  }
  await positions.finish(key);
  const { sinceMs } = starting;
  await client(operation, { method: 'POST', path: `${path}/started`, body: { sinceMs }, answer: done });
  return { topicsRemoved };
}
