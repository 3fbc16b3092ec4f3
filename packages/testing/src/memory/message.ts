import { MESSAGE_PROPERTIES, digestOf, encodeEnvelope, envelopeOf } from '@nightporter/contracts';
import type { PublishRequest } from '@nightporter/relay';
import type { StoredMessage } from './broker.js';

/** The message that a row becomes on the wire. */
export function messageOf({ row, epoch }: PublishRequest, messageId: string): StoredMessage {
  const envelope = envelopeOf(row, row.form);
  return {
    messageId,
    messageGroup: row.eventKey,
    body: encodeEnvelope(envelope),
    properties: {
      [MESSAGE_PROPERTIES.form]: row.form,
      [MESSAGE_PROPERTIES.digest]: digestOf(envelope),
      [MESSAGE_PROPERTIES.relayEpoch]: String(epoch),
      [MESSAGE_PROPERTIES.source]: row.source,
      [MESSAGE_PROPERTIES.eventVersion]: String(row.eventVersion),
    },
  };
}
