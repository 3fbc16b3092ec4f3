import type { EventSummary } from './contract.js';
import { SEARCH_LIMIT_MAX, type SearchPage, type SearchRequest } from './search.js';

export interface FollowedEvents {
  /** What is created before it is not told. */
  readonly startedMs: number;
  /** The clock that dates events: the database's, since another one may be off. */
  readonly now: () => Promise<Date>;
  /** Newest first, a page at a time. */
  readonly page: (request: SearchRequest) => Promise<Pick<SearchPage, 'events' | 'cursor'>>;
  readonly filter?: Pick<SearchRequest, 'eventType' | 'topic'>;
}

export interface EventFollower {
  /**
   * What was committed since the look before, oldest first, and each event once. One look at a time. Rejects as `page` and `now` do; nothing is
   * lost by that, since the next look then covers what this one should have.
   */
  look(): Promise<readonly EventSummary[]>;
}

/** Events of the last few seconds may commit later than younger ones, so they are looked for again. */
const OVERLAP_MS = 15_000;

/** Tells events as they are committed, at the pace of whoever looks. */
export function followEvents({ filter = {}, now, page, startedMs }: FollowedEvents): EventFollower {
  let lookedMs = startedMs;
  let seen = new Map<string, number>();
  return {
    async look() {
      // Behind the look before, however long that took or is ago.
      const fromMs = Math.max(startedMs, lookedMs - OVERLAP_MS);
      const nowMs = (await now()).getTime();
      const fresh = (await since(fromMs, filter, page)).filter(({ eventId }) => !seen.has(eventId));
      for (const { createdAt, eventId } of fresh) seen.set(eventId, createdAt.getTime());
      // What is older than the overlap cannot come again.
      seen = new Map([...seen].filter(([, createdMs]) => createdMs >= fromMs - OVERLAP_MS));
      lookedMs = nowMs;
      return fresh;
    },
  };
}

/** All of them, oldest first: what is committed while the pages are read is newer, or found by the next look. */
async function since(
  fromMs: number,
  filter: NonNullable<FollowedEvents['filter']>,
  page: FollowedEvents['page'],
): Promise<readonly EventSummary[]> {
  const found: EventSummary[] = [];
  let cursor: string | null = null;
  do {
    const answered: Pick<SearchPage, 'events' | 'cursor'> = await page({
      ...filter,
      from: new Date(fromMs),
      limit: SEARCH_LIMIT_MAX,
      ...(cursor === null ? {} : { cursor }),
    });
    found.push(...answered.events);
    ({ cursor } = answered);
  } while (cursor !== null);
  return found.reverse();
}
