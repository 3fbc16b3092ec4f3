import type { ParkedDocument } from '@nightporter/mongo';
import type { EventId } from '@nightporter/protocol';
import type { Filter } from 'mongodb';
import type { DeadLetterFilter, DeadLetters } from './contract.js';
import { deadLetterOf, type DeadLetter } from './documents.js';
import { assertLimit } from './requests.js';
import type { World } from './world.js';

export async function list(
  { group, collections: { parked } }: World,
  { aggregate, code, eventType, reason }: DeadLetterFilter,
  limit: number,
): Promise<readonly DeadLetter[]> {
  assertLimit(limit);
  const query: Filter<ParkedDocument> = {
    group,
    state: 'dead',
    ...(eventType === undefined ? {} : { 'event.eventType': eventType }),
    ...(code === undefined ? {} : { 'failure.code': code }),
    ...(reason === undefined ? {} : { 'failure.message': { $regex: literalPattern(reason) } }),
    ...(aggregate === undefined ? {} : { aggregate }),
  };
  const found = await parked.find(query).sort({ firstFailedAt: 1, _id: 1 }).limit(limit).toArray();
  return found.map(deadLetterOf);
}

/** A text is searched for as it is, whatever it means to a regular expression. */
function literalPattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`);
}

export async function show({ group, collections }: World, eventId: EventId): ReturnType<DeadLetters['show']> {
  const document = await collections.parked.findOne({ group, state: 'dead', 'event.eventId': eventId });
  if (document === null) return null;
  const { aggregate, version } = document;
  const waitingBehind = await collections.parked.countDocuments({
    group,
    sequenced: true,
    aggregate,
    version: { $gt: version },
  });
  const actions = await collections.actions.find({ group, target: document._id }).sort({ at: 1 }).toArray();
  return { deadLetter: deadLetterOf(document), waitingBehind, actions };
}
