import type { z } from 'zod';

/** One event type in one version. */
export interface EventDefinition<
  Type extends string = string,
  Schema extends z.ZodType = z.ZodType,
  Version extends number = number,
  PreviousVersion extends number = number,
> {
  /** Past tense, `OrderCreated`. */
  readonly type: Type;
  /** 1, 2, 3 …; raised when an old consumer could not read the new data. */
  readonly version: Version;
  readonly aggregateType: string;
  /** All events of an aggregate type travel on one FIFO topic. */
  readonly topic: string;
  /**
   * What the data must be. At emit it only judges: the payload is stored as it was given, so defaults and transformations do not
   * change it. At read, keys that the schema does not know are tolerated, so that a producer may add optional ones.
   */
  readonly schema: Schema;
  /** How data of the version right before becomes data of this one; needed wherever that version is in the catalogue too. */
  readonly upcast?: Upcast<PreviousVersion>;
}

/** See {@link defineEvent}, where both functions are typed by their schemas. */
export interface Upcast<PreviousVersion extends number = number> {
  readonly from: { readonly type: string; readonly version: PreviousVersion };
  /** `never`, so that upcasters of any data fit; only {@link defineEvent} knows which. */
  readonly data: (previous: never) => unknown;
}

/** The data of an event definition, as a handler may type it. */
export type EventData<Definition extends EventDefinition> = z.input<Definition['schema']>;

/** What is given to everybody is changed by nobody. */
export type DeepReadonly<Value> = Value extends readonly (infer Item)[]
  ? readonly DeepReadonly<Item>[]
  : Value extends object
    ? { readonly [Key in keyof Value]: DeepReadonly<Value[Key]> }
    : Value;

/** The event types of a list of definitions. */
export type EventTypeOf<Events extends readonly EventDefinition[]> = Events[number]['type'];

/** Of the versions of a type, the one that no other is made from. */
type NewestOf<Versions extends EventDefinition> = Exclude<Versions, { readonly version: PreviousVersionOf<Versions> }>;

type PreviousVersionOf<Versions> = Versions extends { readonly upcast?: Upcast<infer Previous> } ? Previous : never;

/** The data that a handler of `Type` is given: what its newest version says. */
export type NewestData<Events extends readonly EventDefinition[], Type extends EventTypeOf<Events>> = DeepReadonly<
  EventData<NewestOf<Extract<Events[number], { readonly type: Type }>>>
>;

/** What {@link defineEvent} takes: an event definition whose upcaster is typed by the schemas on both sides. */
export type EventDeclaration<
  Type extends string,
  Schema extends z.ZodType,
  Version extends number,
  Previous extends EventDefinition,
> = Omit<EventDefinition<Type, Schema, Version>, 'upcast'> & {
  readonly upcast?: {
    /** The version right before this one. */
    readonly from: Previous;
    /** Pure: the same data always becomes the same. It is given a copy. */
    readonly data: (previous: EventData<Previous>) => z.input<Schema>;
  };
};

/** Declares an event; `createCatalogue` checks it. */
export function defineEvent<
  const Type extends string,
  Schema extends z.ZodType,
  const Version extends number,
  Previous extends EventDefinition = never,
>(
  definition: EventDeclaration<Type, Schema, Version, Previous>,
): EventDefinition<Type, Schema, Version, Previous['version']> {
  return definition;
}
