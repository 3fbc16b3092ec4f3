import {
  createDeadLetters,
  discoverDeployment,
  type DeadLetters,
  type Deployment,
  type Place,
} from '@nightporter/ledger';
import { ProblemError } from '@nightporter/http';
import type { MongoClient } from 'mongodb';
import { problem } from '../http/problems.js';

export interface Stoppable {
  readonly signal: AbortSignal;
  readonly stop: () => void;
}

/** What operators work on. */
export interface Operations {
  readonly client: MongoClient;
  /** Looked for again every few seconds, since groups come and go. */
  deployment(): Promise<Deployment>;
  /** @throws a problem where the group's database is not known. */
  deadLetters(group: string): Promise<DeadLetters>;
  /** @throws a problem where it is not known. */
  relay(): Promise<Place>;
  /** Runs what costs the databases dear, one at a time; another one is refused meanwhile. */
  alone<Result>(what: string, run: (stoppable: Stoppable) => Promise<Result>): Promise<Result>;
}

const KNOWN_MS = 5_000;

export function createOperations(
  client: MongoClient,
  known: Pick<Deployment, 'producers'> & { readonly relayDatabase: string | null },
): Operations {
  let found: { readonly deployment: Promise<Deployment>; readonly untilMs: number } | null = null;
  let running: string | null = null;

  function deployment(): Promise<Deployment> {
    if (found !== null && performance.now() < found.untilMs) return found.deployment;
    const relay = known.relayDatabase === null ? {} : { relay: { client, database: known.relayDatabase } };
    const looked = discoverDeployment(client, { producers: known.producers, ...relay });
    found = { deployment: looked, untilMs: performance.now() + KNOWN_MS };
    // What failed is not kept: the next one asks again.
    looked.catch(() => (found = null));
    return looked;
  }

  return {
    client,
    deployment,
    async deadLetters(group) {
      const { groups } = await deployment();
      const home = groups.find((place) => place.group === group);
      if (home !== undefined) return createDeadLetters(home);
      const names = groups.map((place) => place.group).join(', ');
      throw new ProblemError(
        problem(
          'group-unknown',
          `where group ${JSON.stringify(group)} keeps its data is not known; accepted: ${names}`,
        ),
      );
    },
    async relay() {
      const { relay } = await deployment();
      if (relay !== null) return relay;
      throw new ProblemError(problem('refused', 'the relay’s database is not known; accepted: RELAY_DB set'));
    },
    async alone(what, run) {
      if (running !== null)
        throw new ProblemError(problem('busy', `${running} is running; ask again when it has ended`));
      running = what;
      const controller = new AbortController();
      try {
        return await run({
          signal: controller.signal,
          stop: () => {
            controller.abort();
          },
        });
      } finally {
        running = null;
      }
    },
  };
}
