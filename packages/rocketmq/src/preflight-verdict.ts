/** What the proxy says of a topic. */
export type TopicAnswer =
  { readonly kind: 'missing' } | { readonly kind: 'route'; readonly queues: readonly QueueAnswer[] };

export interface QueueAnswer {
  readonly broker: string;
  /** Can be read and written. */
  readonly usable: boolean;
  /** Names of the message types that it takes. */
  readonly types: readonly string[];
}

/** What the proxy says of a consumer group. */
export type GroupAnswer =
  | { readonly kind: 'missing' }
  | { readonly kind: 'settings'; readonly ordered: boolean; readonly retryTimesMax: number };

export type TopicVerdict =
  | { readonly kind: 'ready'; readonly queueCount: number }
  | { readonly kind: 'missing' }
  | { readonly kind: 'wrong-type'; readonly types: readonly string[]; readonly queuesPerBroker: number }
  | { readonly kind: 'unusable'; readonly queuesPerBroker: number };

export type GroupVerdict =
  | { readonly kind: 'ready'; readonly retryTimesMax: number }
  | { readonly kind: 'missing' }
  | { readonly kind: 'unordered'; readonly retryTimesMax: number }
  | { readonly kind: 'few-retries'; readonly retryTimesMax: number };

/** A FIFO topic needs at least one queue that is read and written, and every one of its queues must take FIFO messages. */
export function judgeTopic(answer: TopicAnswer): TopicVerdict {
  if (answer.kind === 'missing' || answer.queues.length === 0) return { kind: 'missing' };
  const { queues } = answer;
  const brokers = new Map<string, number>();
  for (const { broker } of queues) brokers.set(broker, (brokers.get(broker) ?? 0) + 1);
  const queuesPerBroker = Math.max(...brokers.values());
  const refusing = queues.find(({ types }) => !types.includes('FIFO'));
  if (refusing !== undefined) return { kind: 'wrong-type', types: refusing.types, queuesPerBroker };
  const queueCount = queues.filter(({ usable }) => usable).length;
  return queueCount === 0 ? { kind: 'unusable', queuesPerBroker } : { kind: 'ready', queueCount };
}

/** A group must read in order, and must not give up messages that are only waiting for this project's own retries. */
export function judgeGroup(answer: GroupAnswer, retryTimesMin: number): GroupVerdict {
  if (answer.kind === 'missing') return { kind: 'missing' };
  const { ordered, retryTimesMax } = answer;
  if (!ordered) return { kind: 'unordered', retryTimesMax };
  return { kind: retryTimesMax < retryTimesMin ? 'few-retries' : 'ready', retryTimesMax };
}
