import type { Collection, Db } from 'mongodb';
import { CONSUMER_COLLECTIONS } from './collections.js';
import type { CopyDocument, InboxDocument, ParkedDocument, PositionDocument, SetAsideDocument } from './documents.js';

export interface GroupCollections {
  readonly positions: Collection<PositionDocument>;
  readonly inbox: Collection<InboxDocument>;
  readonly parked: Collection<ParkedDocument>;
  /** The same collection, for what has no place in a sequence. */
  readonly aside: Collection<SetAsideDocument>;
  /** Dead letters that are to be copied. */
  readonly copies: Collection<CopyDocument>;
}

export function groupCollections(database: Db): GroupCollections {
  return {
    positions: database.collection(CONSUMER_COLLECTIONS.positions),
    inbox: database.collection(CONSUMER_COLLECTIONS.inbox),
    parked: database.collection(CONSUMER_COLLECTIONS.parked),
    aside: database.collection(CONSUMER_COLLECTIONS.parked),
    copies: database.collection(CONSUMER_COLLECTIONS.copies),
  };
}
