import {
  ENVELOPE_BYTES_CEILING,
  assertPayload,
  digestOf,
  encodeEnvelope,
  type EventEnvelope,
  type ReadVerdict,
} from '@nightporter/contracts';
import { storedEnvelope, type ParkedDocument, type StoredEvent } from '@nightporter/mongo';
import { invalid } from './requests.js';

export type EventCheck = (envelope: EventEnvelope) => ReadVerdict;

/**
 * The stored message with other data: everything that names and orders the event stays, and the digest becomes the edited event's own,
 * so that what is applied is exactly what the operator wrote.
 *
 * @throws NP_ACTION_INVALID for a tombstone, for an envelope that was damaged where it is stored, for data that its handler could not be given,
 * and for an event that is too large; NP_PAYLOAD_NOT_JSON for data that JSON cannot carry.
 */
export function editedEvent(
  { aggregate, version, event }: Pick<ParkedDocument, 'aggregate' | 'version' | 'event'>,
  data: unknown,
  read?: EventCheck,
): StoredEvent {
  const { eventId, eventType, form } = event;
  if (form !== 'original') throw invalid(`Event ${eventId} is a ${form}, which has no data; accepted: retry or skip.`);
  assertPayload(data);
  const stored = storedEnvelope({ aggregate, version, event });
  if (stored.kind === 'damaged') {
    throw invalid(
      `The stored envelope of event ${eventId} was damaged (${stored.reason}), so that there is nothing to edit; accepted: skip, or restore ` +
        'event.envelope of the row from the outbox or a backup, and retry.',
    );
  }
  const envelope: EventEnvelope = { ...stored.envelope, data };
  const verdict = read?.(envelope);
  if (verdict !== undefined && verdict.kind !== 'event') {
    throw invalid(`The edited ${eventType} ${eventId} could not be handled: ${verdict.reason}.`);
  }
  const { length } = encodeEnvelope(envelope);
  if (length > ENVELOPE_BYTES_CEILING) {
    throw invalid(`The edited event ${eventId} has ${length} bytes; accepted: at most ${ENVELOPE_BYTES_CEILING}.`);
  }
  return { ...event, envelope: JSON.stringify(envelope), digest: digestOf(envelope) };
}
