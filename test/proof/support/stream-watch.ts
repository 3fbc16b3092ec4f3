import type { Document, Long, MongoClient } from 'mongodb';

/** Change streams that a driver has asked its server for. */
export interface StreamWatch {
  /** Requests, those that were refused and the driver's own attempts to resume included. */
  readonly openings: number;
  /** Of the stream that was opened last. */
  readonly cursor: Long;
}

/** @throws where `cursor` is asked for before there is one. The client must monitor its commands. */
export function watchStreams(client: MongoClient): StreamWatch {
  const requests = new Set<number>();
  let cursor: Long | undefined;
  client.on('commandStarted', ({ command, requestId }) => {
    const { pipeline } = command as { readonly pipeline?: readonly Document[] };
    if (pipeline?.[0]?.['$changeStream'] !== undefined) requests.add(requestId);
  });
  client.on('commandSucceeded', ({ reply, requestId }) => {
    if (requests.has(requestId)) ({ id: cursor } = (reply as { readonly cursor: { readonly id: Long } }).cursor);
  });
  return {
    get openings() {
      return requests.size;
    },
    get cursor() {
      if (cursor === undefined) throw new Error('no stream has been opened');
      return cursor;
    },
  };
}
