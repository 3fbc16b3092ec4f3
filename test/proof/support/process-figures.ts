import type { RelaySnapshot } from '@nightporter/relay';
import { readFileSync } from 'node:fs';
import type { Program } from '../../e2e/programs.js';

/** Rows in memory of a relay, and its sends in flight, over its shards. */
export async function loadOf(url: string): Promise<{ readonly rowsInMemory: number; readonly sendsInFlight: number }> {
  const { shards } = (await (await fetch(`${url}/status`)).json()) as RelaySnapshot;
  return {
    rowsInMemory: shards.reduce((sum, shard) => sum + shard.rowsInMemory, 0),
    sendsInFlight: shards.reduce((sum, shard) => sum + shard.sendsInFlight, 0),
  };
}

/** The most that a process has had in memory, as Linux keeps it. */
export function rssMaxOf(program: Program): number {
  const status = readFileSync(`/proc/${program.processId}/status`, 'utf8');
  const [, kibibytes] = /^VmHWM:\s+(\d+) kB$/m.exec(status) ?? [];
  if (kibibytes === undefined) throw new Error('the system does not tell how much memory a process has had');
  return Number(kibibytes) * 1024;
}
