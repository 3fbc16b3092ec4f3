import { NightporterError, brokerGroup, groupId } from '@nightporter/protocol';
import type { ConsumerPorts } from './engine.js';

/** Ports that were made for different groups would settle for one what was received for another. Rejects with NP_CONFIG_INVALID. */
export function assertOneGroup<Session>(
  group: string,
  {
    brokerDeadLetters,
    ledgerSweep,
    store,
    subscribers,
  }: Pick<ConsumerPorts<Session>, 'brokerDeadLetters' | 'ledgerSweep' | 'store' | 'subscribers'>,
): void {
  const atBroker = brokerGroup(groupId(group));
  const named = [
    { what: 'the group store', found: store.group, expected: group },
    { what: "the reader of the broker's dead letters", found: brokerDeadLetters?.group, expected: atBroker },
    ...subscribers.map((subscriber) => ({ what: 'a subscriber', found: subscriber.group, expected: atBroker })),
    ...(ledgerSweep?.producers ?? []).map(({ registry }) => ({
      what: "the entry in a producer's groups",
      found: registry.group,
      expected: group,
    })),
  ];
  for (const { what, found, expected } of named) {
    if (found === undefined || found === expected) continue;
    const message = `The consumer is of group ${group}, but ${what} is of group ${found}; accepted there: ${expected}.`;
    throw new NightporterError('NP_CONFIG_INVALID', message);
  }
}
