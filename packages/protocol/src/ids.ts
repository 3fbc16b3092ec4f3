/**
 * Branded identifiers. A brand costs nothing at run time and keeps an event id from being passed where a group is meant.
 * The constructors only name a value; validation of foreign input happens in `contracts` and at the edges.
 */
declare const brand: unique symbol;
type Branded<T, Name extends string> = T & { readonly [brand]: Name };

/** UUIDv7 of an event, assigned once at emit, stable over every retry. */
export type EventId = Branded<string, 'EventId'>;
/** 1, 2, 3 … per aggregate, counting events; assigned from `outbox_heads`. */
export type AggregateVersion = Branded<number, 'AggregateVersion'>;
/** Canonical key of (source, aggregateType, aggregateId): see {@link aggregateKey}. */
export type AggregateKey = Branded<string, 'AggregateKey'>;
/** Name of a consumer group, `name` or `name@generation`. */
export type GroupId = Branded<string, 'GroupId'>;
/** Hash of an event key, 0 … {@link SLOT_COUNT} − 1. */
export type Slot = Branded<number, 'Slot'>;
/** Raised at each take-over of a lease. */
export type Epoch = Branded<number, 'Epoch'>;
/** `database.collection` of an outbox. */
export type Namespace = Branded<string, 'Namespace'>;
/** Opaque position in a change stream. Never compared, never parsed. */
export type ResumeToken = Branded<string, 'ResumeToken'>;

export const eventId = (value: string): EventId => value as EventId;
export const aggregateVersion = (value: number): AggregateVersion => value as AggregateVersion;
export const groupId = (value: string): GroupId => value as GroupId;
/**
 * What a group is called at the broker, whose names have no `@`: the second generation of `points` is `points-generation-2` there. It
 * is a group of its own for the broker too.
 */
export function brokerGroup(group: GroupId): string {
  return group.replace('@', '-generation-');
}

export const slot = (value: number): Slot => value as Slot;
export const epoch = (value: number): Epoch => value as Epoch;
export const namespace = (value: string): Namespace => value as Namespace;
export const resumeToken = (value: string): ResumeToken => value as ResumeToken;

/** What names an aggregate everywhere: two services may both have an `order/1`. */
export interface AggregateIdentity {
  readonly source: string;
  readonly aggregateType: string;
  readonly aggregateId: string;
}

/**
 * One string for an aggregate, equal exactly when the identity is equal: the three parts percent-encoded and joined by `/`.
 * It holds no space and no control character, so that it can be a RocketMQ key.
 */
export function aggregateKey(identity: AggregateIdentity): AggregateKey {
  return [identity.source, identity.aggregateType, identity.aggregateId].map(encodePart).join('/') as AggregateKey;
}

/** The identity that {@link aggregateKey} encoded. */
export function aggregateIdentity(key: AggregateKey): AggregateIdentity {
  const [source = '', aggregateType = '', aggregateId = ''] = key.split('/').map(decodeURIComponent);
  return { source, aggregateType, aggregateId };
}

function encodePart(part: string): string {
  return encodeURIComponent(part);
}
