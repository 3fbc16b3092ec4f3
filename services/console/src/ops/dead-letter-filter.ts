import type { DeadLetterFilter } from '@nightporter/ledger';
import type { AggregateKey } from '@nightporter/protocol';

type Filter = { readonly [Key in 'eventType' | 'code' | 'reason' | 'aggregate']?: string | undefined };

/** Without what was not asked for. */
export function filterOf({ aggregate, code, eventType, reason }: Filter): DeadLetterFilter {
  return {
    ...(eventType === undefined ? {} : { eventType }),
    ...(code === undefined ? {} : { code }),
    ...(reason === undefined ? {} : { reason }),
    ...(aggregate === undefined ? {} : { aggregate: aggregate as AggregateKey }),
  };
}
