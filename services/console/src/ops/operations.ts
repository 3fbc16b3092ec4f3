import {
  createDeadLetters,
  discoverDeployment,
  type DeadLetters,
  type Deployment,
  type GroupPlace,
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
  /** Where a group keeps its data. @throws a problem where that is not known. */
  home(group: string): Promise<GroupPlace>;
  /** @throws as `home` does. */
  deadLetters(group: string): Promise<DeadLetters>;
  /** Has the next one look again: what there is has just been changed. */
  forget(): void;
  /** @throws a problem where it is not known. */
  relay(): Promise<Place>;
  /** Runs what costs the databases dear, one at a time; another one is refused meanwhile. */
  alone<Result>(what: string, run: (stoppable: Stoppable) => Promise<Result>): Promise<Result>;
}

const KNOWN_MS = 5_000;

export function createOperations(
  client: MongoClient,
  known: Pick<Deployment, 'producers'> &
    Partial<Pick<Deployment, 'groups'>> & { readonly relayDatabase: string | null },
): Operations {
  let found: { readonly deployment: Promise<Deployment>; readonly untilMs: number } | null = null;
  let running: string | null = null;

  function deployment(): Promise<Deployment> {
    if (found !== null && performance.now() < found.untilMs) return found.deployment;
    const relay = known.relayDatabase === null ? {} : { relay: { client, database: known.relayDatabase } };
    const looked = discoverDeployment(client, { producers: known.producers, groups: known.groups ?? [], ...relay });
    found = { deployment: looked, untilMs: performance.now() + KNOWN_MS };
    // What failed is not kept: the next one asks again.
    looked.catch(() => (found = null));
    return looked;
  }

  async function home(group: string): Promise<GroupPlace> {
    const { groups } = await deployment();
    const place = groups.find((one) => one.group === group);
    if (place !== undefined) return place;
    const names = groups.map((one) => one.group).join(', ');
    const detail = `where group ${JSON.stringify(group)} keeps its data is not known; accepted: ${names}, or one that GROUP_DBS names`;
    throw new ProblemError(problem('group-unknown', detail));
  }

  return {
    client,
    deployment,
    deadLetters: async (group) => createDeadLetters(await home(group)),
    home,
    forget: () => {
      found = null;
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
