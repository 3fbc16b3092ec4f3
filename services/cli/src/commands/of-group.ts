import { createDeadLetters, type DeadLetter, type DeadLetters, type Deployment } from '@nightporter/ledger';
import { NightporterError } from '@nightporter/protocol';
import { Command } from 'commander';
import { withConnection, type ConnectionFlags } from '../connection.js';

export interface GroupFlags extends ConnectionFlags {
  readonly json: boolean;
}

/** Throws NP_ACTION_INVALID where the group's database is not known. */
export function lettersOf({ groups }: Deployment, group: string): DeadLetters {
  const home = groups.find((place) => place.group === group);
  if (home !== undefined) return createDeadLetters(home);
  const known = groups.map((place) => place.group).join(', ');
  throw new NightporterError(
    'NP_ACTION_INVALID',
    `Where group ${group} keeps its data is not known; accepted: --group-db ${group}=<database>, or one of: ${known}.`,
  );
}

export function ofGroup(name: string, description: string): Command {
  return withConnection(new Command(name).description(description).argument('<group>', 'consumer group'));
}

export function failureOf({ failure }: Pick<DeadLetter, 'failure'>): string {
  return failure === null ? '-' : `${failure.code}: ${failure.message}`;
}
