import type { MongoClient } from 'mongodb';

interface Watch {
  count: number;
}

const watches = new WeakMap<MongoClient, Watch>();

/**
 * How often this client has seen its servers fail, restart or elect. Equal before and after a piece of work: nothing of
 * the kind happened in between. Counts from the first call for a client.
 */
export function disturbancesOf(client: MongoClient): number {
  const known = watches.get(client);
  if (known !== undefined) return known.count;
  const watch: Watch = { count: 0 };
  const count = (): void => {
    watch.count += 1;
  };
  client.on('connectionPoolCleared', count);
  client.on('serverHeartbeatFailed', count);
  client.on('topologyDescriptionChanged', count);
  watches.set(client, watch);
  return watch.count;
}
