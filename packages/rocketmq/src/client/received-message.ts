import { gunzipSync } from 'node:zlib';
import definition, { type Message } from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/definition_pb.js';

/** Four times what the broker takes: compressed bodies are not ours, and must not fill the memory. */
const INFLATED_BYTES_MAX = 16 * 1024 * 1024;

/**
 * Makes sure that the client can wrap a message. It throws for one without body digest and for one that it cannot inflate, and with
 * that for the whole result, for ever: one foreign message would stop its queue. Such a message is handed on as it came, and the
 * engine sets it aside as unreadable.
 */
export function makeReadable(message: Message): void {
  const properties = message.getSystemProperties() ?? new definition.SystemProperties();
  message.setSystemProperties(properties);
  if (!message.hasTopic()) message.setTopic(new definition.Resource());
  if (!properties.hasBodyDigest()) properties.setBodyDigest(new definition.Digest());
  if (properties.getBodyEncoding() !== definition.Encoding.GZIP) return;
  properties.setBodyEncoding(definition.Encoding.IDENTITY);
  const inflated = inflate(message.getBody_asU8());
  if (inflated !== null) message.setBody(inflated);
}

function inflate(body: Uint8Array): Uint8Array | null {
  try {
    return gunzipSync(body, { maxOutputLength: INFLATED_BYTES_MAX });
  } catch {
    // Not gzip, or too large: not a body of ours.
    return null;
  }
}
