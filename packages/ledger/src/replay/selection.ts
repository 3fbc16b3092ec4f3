import type { AggregateKey } from '@nightporter/protocol';
import { invalid } from '../requests.js';
import type { Selection } from './contract.js';

/** What a selection looks at. */
export interface Candidate {
  readonly aggregate: AggregateKey;
  readonly eventType: string;
  readonly publishedAtMs: number;
}

export function isSelected(selection: Selection, { aggregate, eventType, publishedAtMs }: Candidate): boolean {
  const { aggregates, eventTypes, publishedBefore, publishedFrom } = selection;
  if (aggregates !== undefined && !aggregates.includes(aggregate)) return false;
  if (eventTypes !== undefined && !eventTypes.includes(eventType)) return false;
  if (publishedFrom !== undefined && publishedAtMs < publishedFrom.getTime()) return false;
  return publishedBefore === undefined || publishedAtMs < publishedBefore.getTime();
}

/** @throws NP_ACTION_INVALID for a selection of everything, of nothing, or of what is no moment. */
export function assertSelection({ aggregates, eventTypes, publishedBefore, publishedFrom }: Selection): void {
  const given = [aggregates, eventTypes, publishedFrom, publishedBefore].filter((part) => part !== undefined);
  if (given.length === 0) {
    throw invalid(
      'The replay selects everything; accepted: aggregates, eventTypes, publishedFrom or publishedBefore. A new generation that is started ' +
        'from the beginning reads everything.',
    );
  }
  for (const [name, list] of Object.entries({ aggregates, eventTypes })) {
    if (list?.length === 0) throw invalid(`${name} of the replay is empty; accepted: one or more, or none given.`);
  }
  for (const [name, moment] of Object.entries({ publishedFrom, publishedBefore })) {
    if (moment !== undefined && Number.isNaN(moment.getTime())) {
      throw invalid(`${name} of the replay is no valid date; accepted: a date.`);
    }
  }
}

/** Equal exactly for selections of the same events. */
export function selectionText({ aggregates, eventTypes, publishedBefore, publishedFrom }: Selection): string {
  const sorted = (list: readonly string[] | undefined) => (list === undefined ? null : [...new Set(list)].sort());
  return JSON.stringify({
    aggregates: sorted(aggregates),
    eventTypes: sorted(eventTypes),
    publishedFrom: publishedFrom?.toISOString() ?? null,
    publishedBefore: publishedBefore?.toISOString() ?? null,
  });
}
