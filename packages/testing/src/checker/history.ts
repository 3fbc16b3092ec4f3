/**
 * What happened, as plain data: the simulator, the demo and the fault tests on real servers fill it in alike. Ids are opaque
 * strings; `aggregate` may be any string that is equal exactly when the aggregate is.
 */
export interface History {
  /** False while work is still under way: then nothing counts as lost or stuck yet. */
  readonly atRest: boolean;
  /** Every event whose transaction committed, in any order. */
  readonly committed: readonly CommittedRecord[];
  /** What the broker stored, in the order of storing; leave it out where the broker cannot be asked. */
  readonly landings?: readonly LandingRecord[];
  /** Rows of the outbox that are not published. */
  readonly unpublished: readonly UnpublishedRecord[];
  readonly groups: readonly GroupHistory[];
}

export interface CommittedRecord {
  readonly eventId: string;
  readonly aggregate: string;
  readonly version: number;
  /** Where given, compared with the digest of what was landed and read. */
  readonly digest?: string;
  readonly topic?: string;
}

export interface LandingRecord {
  readonly eventId: string;
  readonly form: 'original' | 'tombstone';
  readonly digest?: string;
}

export interface UnpublishedRecord {
  readonly eventId: string;
  /** DEAD waits for an operator, and holds everything behind it in its aggregate; nothing else may remain at rest. */
  readonly status: string;
}

export interface GroupHistory {
  readonly group: string;
  /** Topics that the group is subscribed to; without it, every committed event is the group's. */
  readonly topics?: readonly string[];
  /** Per aggregate, the version up to which everything counts as before the group's start; 0 where not given. */
  readonly startVersions?: Readonly<Record<string, number>>;
  /** Effects of handlers, in the order in which their transactions committed. */
  readonly effects: readonly EffectRecord[];
  /** Everything settled, in any order. */
  readonly settled: readonly SettledRecord[];
  /** What is parked in sequence. */
  readonly parked: readonly ParkedRecord[];
}

export interface EffectRecord {
  readonly eventId: string;
  readonly digest?: string;
}

export interface SettledRecord {
  readonly eventId: string;
  readonly outcome: 'applied' | 'ignored' | 'skipped';
}

export interface ParkedRecord {
  readonly eventId: string;
  readonly state: 'gap' | 'behind' | 'retry' | 'dead';
}

export type ViolationKind =
  /** Committed, but neither settled nor visibly waiting. */
  | 'lost'
  /** One event took effect more than once, or one version was given twice. */
  | 'doubled'
  /** Something came before its predecessor. */
  | 'out of order'
  /** Something that was never committed. */
  | 'phantom'
  /** Waiting at rest, and nobody will ever come. */
  | 'stuck'
  /** Not what was written. */
  | 'altered';

export interface Violation {
  readonly kind: ViolationKind;
  /** Absent where the fault lies before the groups: in the outbox or at the broker. */
  readonly group?: string;
  readonly eventId: string;
  /** What was found, in a sentence. */
  readonly detail: string;
}
