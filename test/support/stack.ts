import { randomBytes } from 'node:crypto';
import type { GroupRequest, MongoEngine, RocketMqAdmin, TopicRequest } from '@nightporter/embedded';
import { inject } from 'vitest';
import { controlClient } from './control.js';

declare module 'vitest' {
  export interface ProvidedContext {
    mongodbUri: string;
    mongodbEngine: MongoEngine;
    rocketmqEndpoints: string;
    /** `host:port`; null where the broker is not ours and its name server was not named. */
    rocketmqNameServer: string | null;
    /** Where the broker's own exporter answers; null where the broker is not ours. */
    rocketmqMetricsPort: number | null;
    /** The socket of the shared stack's administration. */
    stackControl: string;
  }
}

/** The stack that all tests of a run share: never kill it, and use names of your own (`uniqueName`). */
export type SharedStack = RocketMqAdmin & {
  mongodbUri: string;
  mongodbEngine: MongoEngine;
  rocketmqEndpoints: string;
};

export function sharedStack(): SharedStack {
  return {
    mongodbUri: inject('mongodbUri'),
    mongodbEngine: inject('mongodbEngine'),
    rocketmqEndpoints: inject('rocketmqEndpoints'),
    ...controlClient(inject('stackControl')),
  };
}

/** Creates a topic on the shared stack; it is usable at once. Returns its name. */
export async function createTopic(topic: TopicRequest): Promise<string> {
  await sharedStack().createTopic(topic);
  return topic.name;
}

/** Creates a consumer group on the shared stack; it is usable at once. Returns its name. */
export async function createGroup(group: GroupRequest): Promise<string> {
  await sharedStack().createGroup(group);
  return group.name;
}

/** A name that no other test has, fit for a topic, a group and a database (prefix of at most 40 letters, digits, `-`, `_`). */
export function uniqueName(prefix: string): string {
  if (!/^[A-Za-z0-9_-]{1,40}$/.test(prefix))
    throw new Error(`"${prefix}" is no prefix of 1 to 40 letters, digits, "-" or "_"`);
  return `${prefix}-${randomBytes(6).toString('hex')}`;
}
