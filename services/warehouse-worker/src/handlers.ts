import { ordersCatalogue } from '@nightporter/contracts';
import type { ContextOf, HandlersOf } from '@nightporter/worker';
import type { WarehouseCollections } from './store/documents.js';
import { stagedEvent } from './domain/facts.js';

type Events = typeof ordersCatalogue.events;
type Context = ContextOf<Events, Events[number]['type']>;

/**
 * Stages every event for the lander. Strategy: inbox. A staged event goes once it is in a file, so that nothing but the inbox and the
 * position knows that it was here before.
 */
export function createWarehouseHandlers({ staged }: WarehouseCollections): HandlersOf<Events> {
  const stage = async ({ event, session }: Pick<Context, 'event' | 'session'>): Promise<void> => {
    const { eventId: _id, ...rest } = stagedEvent(event);
    await staged.insertOne({ _id, ...rest }, { session });
  };
  return Object.fromEntries(ordersCatalogue.events.map(({ type }) => [type, stage]));
}
