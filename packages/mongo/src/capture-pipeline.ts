import type { OutboxDocument } from '@nightporter/contracts';
import { SLOT_COUNT, namespace, type Namespace, type Slot } from '@nightporter/protocol';
import type { ChangeStreamDocument, Document } from 'mongodb';
import { namespaceParts } from './collections.js';

/** Filters on the server: inserts into the slots, and whatever takes an outbox away or puts another in its place. */
export function capturePipeline(namespaces: readonly Namespace[], slots: readonly Slot[]): Document[] {
  const parts = namespaces.map(namespaceParts);
  const databases = [...new Set(parts.map((part) => part.database))];
  const from = parts.map(({ database, collection }) => ({ 'ns.db': database, 'ns.coll': collection }));
  const to = parts.map(({ database, collection }) => ({ 'to.db': database, 'to.coll': collection }));
  const inSlots = new Set(slots).size === SLOT_COUNT ? { $gte: 0 } : { $in: [...slots] };
  return [
    {
      $match: {
        $or: [
          { operationType: 'insert', $or: from, 'fullDocument.slot': inSlots },
          { operationType: 'drop', $or: from },
          { operationType: 'rename', $or: [...from, ...to] },
          { operationType: 'dropDatabase', 'ns.db': { $in: databases } },
          { operationType: 'invalidate' },
        ],
      },
    },
  ];
}

export type Captured =
  | { readonly kind: 'insert'; readonly namespace: Namespace; readonly document: OutboxDocument }
  /** These outboxes are gone, or are others than before. */
  | { readonly kind: 'disturbance'; readonly namespaces: readonly Namespace[] }
  /** The stream is over. */
  | { readonly kind: 'end' };

/** What a change that passed the pipeline means. */
export function capturedOf(change: ChangeStreamDocument<OutboxDocument>, configured: readonly Namespace[]): Captured {
  if (change.operationType === 'insert') {
    const { ns, fullDocument: document } = change;
    return { kind: 'insert', namespace: namespace(nameOf(ns)), document };
  }
  if (change.operationType === 'drop') return disturbance(configured, [nameOf(change.ns)]);
  if (change.operationType === 'rename') return disturbance(configured, [nameOf(change.ns), nameOf(change.to)]);
  if (change.operationType === 'dropDatabase') {
    const { db } = change.ns;
    return { kind: 'disturbance', namespaces: configured.filter((name) => namespaceParts(name).database === db) };
  }
  return { kind: 'end' };
}

function nameOf({ db, coll }: { readonly db: string; readonly coll: string }): string {
  return `${db}.${coll}`;
}

function disturbance(configured: readonly Namespace[], touched: readonly string[]): Captured {
  return { kind: 'disturbance', namespaces: configured.filter((name) => touched.includes(name)) };
}
