import { NightporterError } from '@nightporter/protocol';
import { ObjectId, type ClientSession, type Db, type MongoClient } from 'mongodb';
import { RELAY_COLLECTIONS } from './collections.js';
import { untilNoConflict, type ConflictWait } from './conflicts.js';
import type { OperatorActionDocument } from './documents.js';
import { runTransaction, type Attempt } from './transactions.js';

/** Who does it, and why: both go on record. */
export interface Operator {
  readonly by: string;
  readonly reason: string;
}

const BY_CHARACTERS_MAX = 200;
const REASON_CHARACTERS_MAX = 2_000;

/** Throws NP_ACTION_INVALID where somebody does not say who he is, or why. */
export function assertOperator({ by, reason }: Operator): void {
  assertText('by', by, BY_CHARACTERS_MAX);
  assertText('reason', reason, REASON_CHARACTERS_MAX);
}

function assertText(name: string, value: unknown, charactersMax: number): void {
  if (typeof value === 'string' && value.trim() !== '' && value.length <= charactersMax) return;
  const given = typeof value === 'string' ? `has ${value.length} characters` : `is ${typeof value}`;
  const accepted = `accepted: 1 to ${charactersMax} characters that are not all blank`;
  throw new NightporterError('NP_ACTION_INVALID', `"${name}" of an operator's action ${given}; ${accepted}.`);
}

/**
 * Runs an action of an operator in a transaction; what conflicts with the relay or with another operator is decided anew, for a limited time.
 * Rejects with NP_STORE_UNAVAILABLE; the action may have been done all the same, and can be repeated. With NP_TRANSACTION_CONFLICT only
 * where `signal` ended the wait for another transaction: then nothing was written.
 */
export async function runAction<Result>(
  client: MongoClient,
  operation: string,
  work: (session: ClientSession) => Promise<Result>,
  wait: ConflictWait = {},
): Promise<Result> {
  const attempt = ({ session, own }: Attempt): Promise<Result> => own(operation, () => work(session));
  return untilNoConflict(operation, () => runTransaction(client, operation, attempt), wait);
}

/** Puts an action on record, in the transaction that carries it out, dated by the database's clock. */
export async function recordAction(
  database: Db,
  session: ClientSession,
  record: Pick<OperatorActionDocument, 'action' | 'target' | 'details'> & Operator,
): Promise<ObjectId> {
  const { action, target, by, reason, details } = record;
  const values = { action, target, by, reason };
  const detailed = details === undefined ? {} : { details: { $literal: details } };
  const update = [{ $set: { ...literals(values), ...detailed, at: '$$NOW' } }];
  const actions = database.collection<OperatorActionDocument>(RELAY_COLLECTIONS.actions);
  const _id = new ObjectId();
  await actions.updateOne({ _id }, update, { session, upsert: true });
  return _id;
}

/** Text that a person wrote may begin with a `$`. */
export function literals(values: Readonly<Record<string, string>>): Record<string, { readonly $literal: string }> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, { $literal: value }]));
}
