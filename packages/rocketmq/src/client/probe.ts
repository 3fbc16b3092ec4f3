import type { ServiceError } from '@grpc/grpc-js';
import definition from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/definition_pb.js';
import service from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/service_pb.js';
import type { GroupAnswer, TopicAnswer } from '../preflight-verdict.js';
import { limitsOf, type ConnectionOptions } from '../options.js';
import { HardenedConsumer, HardenedProducer } from './hardened-clients.js';
import { stopWithin } from './lifecycle.js';

const TOPIC_NOT_FOUND = new Set<number>([definition.Code.NOT_FOUND, definition.Code.TOPIC_NOT_FOUND]);
/** gRPC's INVALID_ARGUMENT: how a proxy refuses the settings of a consumer whose group does not exist. */
const GROUP_REFUSED = 3;

/** Asks the proxy for the route of a topic. Rejects when it does not answer, or answers with another error. */
export async function askForTopic(options: ConnectionOptions, topic: string): Promise<TopicAnswer> {
  const { startTimeoutMs, closeTimeoutMs } = limitsOf(options);
  const client = new HardenedProducer(options, topic);
  try {
    const endpoints = client.getEndpoints();
    const request = new service.QueryRouteRequest()
      .setTopic(new definition.Resource().setName(topic))
      .setEndpoints(endpoints.toProtobuf());
    const response = await client.transport.queryRoute(endpoints, request, startTimeoutMs);
    const status = response.getStatus();
    if (status !== undefined && TOPIC_NOT_FOUND.has(status.getCode())) return { kind: 'missing' };
    if (status?.getCode() !== definition.Code.OK) {
      throw new Error(`${status?.getCode() ?? 'no status'} ${status?.getMessage() ?? ''}`);
    }
    const queues = response.getMessageQueuesList().map((queue) => ({
      broker: queue.getBroker()?.getName() ?? '',
      usable: queue.getPermission() === definition.Permission.READ_WRITE,
      types: queue.getAcceptMessageTypesList().map(typeName),
    }));
    return { kind: 'route', queues };
  } finally {
    await stopWithin(client, closeTimeoutMs);
  }
}

/** Asks the proxy for the settings that it pushes to a consumer of the group. Rejects when it does not answer. */
export async function askForGroup(options: ConnectionOptions, group: string, topic: string): Promise<GroupAnswer> {
  const { startTimeoutMs, closeTimeoutMs } = limitsOf(options);
  const client = new HardenedConsumer(options, { group, topic, waitMs: startTimeoutMs });
  try {
    const answer = await client.transport.ask(client.getEndpoints(), client.settingsCommand(), startTimeoutMs);
    const subscription = answer.getSettings()?.getSubscription();
    const backoff = answer.getSettings()?.getBackoffPolicy();
    // Older proxies return the settings as they came when there is no such group.
    if (subscription === undefined || backoff === undefined) return { kind: 'missing' };
    // A message is delivered once more than it is redelivered.
    return { kind: 'settings', ordered: subscription.getFifo() === true, retryTimesMax: backoff.getMaxAttempts() - 1 };
  } catch (error) {
    if (isRefusalOfGroup(error)) return { kind: 'missing' };
    throw error;
  } finally {
    await stopWithin(client, closeTimeoutMs);
  }
}

function isRefusalOfGroup(error: unknown): boolean {
  return (
    error instanceof Error &&
    'code' in error &&
    error.code === GROUP_REFUSED &&
    (error as ServiceError).details.includes('group not found')
  );
}

function typeName(type: definition.MessageType): string {
  return Object.entries(definition.MessageType).find(([, value]) => value === type)?.[0] ?? String(type);
}
