import type { Catalogue } from './catalogue.js';
import type { EventDefinition } from './event-definition.js';
import { releasedEvent, type ReleasedCatalogue, type ReleasedEvent } from './released.js';
import { schemaChanges } from './schema-changes.js';

/** One promise of a release that a later catalogue breaks. */
export interface BreakingChange {
  readonly release: string;
  readonly eventType: string;
  readonly eventVersion: number;
  /** Where in the event: `payload.lines[].quantity`, or `topic`, `version` … */
  readonly path: string;
  readonly change: string;
}

/**
 * What a catalogue breaks of a release: an event or version that is gone, an aggregate type or topic that changed, a schema that changed
 * within its version in any way but a new optional field, a newer version to which an upcaster is missing. Empty when all is kept.
 */
export function breakingChanges(
  released: ReleasedCatalogue,
  { events }: Pick<Catalogue, 'events'>,
): readonly BreakingChange[] {
  return released.events.flatMap((event) => {
    const versions = events.filter(({ type }) => type === event.type);
    return changesOf(event, versions).map((change) => ({
      release: released.release,
      eventType: event.type,
      eventVersion: event.version,
      ...change,
    }));
  });
}

/** `OrderPaid version 1, payload.currency: field removed (promised by 0.1.0)` */
export function describeBreakingChange({ release, eventType, eventVersion, path, change }: BreakingChange): string {
  return `${eventType} version ${eventVersion}, ${path}: ${change} (promised by ${release})`;
}

type Change = Pick<BreakingChange, 'path' | 'change'>;

function changesOf(event: ReleasedEvent, versions: readonly EventDefinition[]): readonly Change[] {
  if (versions.length === 0) return [{ path: 'type', change: 'event removed' }];
  const same = versions.find(({ version }) => version === event.version);
  const changes: Change[] = same === undefined ? [{ path: 'version', change: 'version removed' }] : [];
  if (same !== undefined) changes.push(...changesWithin(event, releasedEvent(same)));
  const newest = Math.max(...versions.map(({ version }) => version));
  for (let version = event.version + 1; version <= newest; version += 1) {
    if (versions.find((other) => other.version === version)?.upcast !== undefined) continue;
    changes.push({
      path: 'version',
      change: `version changed without upcaster: none makes version ${version} from version ${version - 1}`,
    });
  }
  return changes;
}

function changesWithin(before: ReleasedEvent, now: ReleasedEvent): readonly Change[] {
  const names = (['aggregateType', 'topic'] as const).filter((name) => before[name] !== now[name]);
  return [
    ...names.map((name) => ({ path: name, change: `changed from ${before[name]} to ${now[name]}` })),
    ...schemaChanges(before.schema, now.schema),
  ];
}
