import type { GroupRegistry } from '@nightporter/consumer';
import { createLedgerClient, type LedgerServer } from './ledger-client.js';
import { claimAnswer, done, standingAnswer } from './wire.js';

/** A group's entry with a producer, kept through the producer's ops API. */
export function createHttpGroupRegistry({
  group,
  ...server
}: LedgerServer & { readonly group: string }): GroupRegistry {
  const client = createLedgerClient(server);
  const path = `/groups/${encodeURIComponent(group)}`;
  const place = `group ${group}`;
  return {
    group,
    standing: () => client(`looking for ${place}`, { method: 'GET', path, answer: standingAnswer }),
    async claim(body) {
      const request = { method: 'POST', path: `${path}/claim`, body, answer: claimAnswer } as const;
      return (await client(`claiming the sweep of ${place}`, request)) ?? { kind: 'unregistered' };
    },
    async advance(body) {
      const request = { method: 'PUT', path: `${path}/watermark`, body, answer: done } as const;
      await client(`moving the watermark of ${place}`, request);
    },
    async release(owner) {
      const request = { method: 'POST', path: `${path}/release`, body: { owner }, answer: done } as const;
      await client(`releasing the sweep of ${place}`, request);
    },
  };
}
