import type { EventId } from '@nightporter/protocol';
import type { Cluster } from './cluster.js';
import type { Knobs } from './knobs.js';

/** How long an event may take while one topic is away and nothing else is wrong. */
export const FLOW_MS = 8_000;

/** Nothing but the topic that is away, and one restart, keeps an event from its topic. */
function isOtherwiseCalm(knobs: Knobs): boolean {
  const { databaseFaults, brokerFaults, crashAtCalls, slowness } = knobs;
  const isDisturbed = [
    knobs.relayCrashes,
    knobs.relayPauses,
    knobs.relayRestarts,
    knobs.brokerOutages,
    knobs.brokerRestarts,
    knobs.silentSkips,
    knobs.permanentFailures,
    knobs.topicFailures,
    knobs.throttling,
    knobs.operatorPauses,
    knobs.polling,
  ].some((isOn) => isOn);
  return !isDisturbed && databaseFaults + brokerFaults + crashAtCalls === 0 && slowness <= 4;
}

/** Events that must have landed in {@link FLOW_MS} from now: those of topics that take messages. */
export function eventsThatFlow({ knobs, troubles, assertions }: Cluster): readonly EventId[] {
  if (troubles.awayTopic === null || !isOtherwiseCalm(knobs)) return [];
  return assertions.committed.filter(({ topic }) => topic !== troubles.awayTopic).map(({ eventId }) => eventId);
}

/** A topic that takes nothing holds back its own events only. */
export function reportStanding(cluster: Cluster, events: readonly EventId[]): void {
  const landed = new Set(cluster.assertions.landings.map(({ eventId }) => eventId));
  for (const eventId of events) {
    if (landed.has(eventId)) continue;
    cluster.report('other topics flow', `${eventId} has not landed in ${FLOW_MS} ms, though its topic takes messages`);
  }
}
