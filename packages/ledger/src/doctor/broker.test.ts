import { NightporterError } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { brokerNotAsked, examineBroker, type BrokerProbe } from './broker.js';

const registered = [
  { group: 'inventory', topics: ['orders-events'] },
  { group: 'points@2', topics: ['orders-events', 'shipping-events', 'inventory-events'] },
];

/** A broker that refuses what `refusals` says, by topic or `group/topic`; `asked` is in the order of the questions. */
function broker(refusals: Readonly<Record<string, Error>>): BrokerProbe & { readonly asked: readonly string[] } {
  const asked: string[] = [];
  const answer = (what: string): Promise<void> => {
    asked.push(what);
    const refusal = refusals[what];
    return refusal === undefined ? Promise.resolve() : Promise.reject(refusal);
  };
  return { asked, topic: (topic) => answer(topic), group: ({ group, topic }) => answer(`${group}/${topic}`) };
}

const unordered = new NightporterError(
  'NP_PREFLIGHT_GROUP_UNORDERED',
  'Consumer group points-generation-2 reads out of order; accepted: ordered consumption. Mend it: mqadmin updateSubGroup -o true',
);
const missing = new NightporterError(
  'NP_PREFLIGHT_TOPIC_MISSING',
  'RocketMQ has no topic shipping-events. Create it: mqadmin updateTopic -t shipping-events',
);

describe('the examination of the broker', () => {
  it('asks for every topic once, and for every group with each of its topics, by its name at the broker', async () => {
    const sound = broker({});
    expect(await examineBroker(sound, { registered })).toEqual([]);
    expect(sound.asked).toEqual([
      'inventory-events',
      'orders-events',
      'shipping-events',
      'inventory/orders-events',
      'points-generation-2/orders-events',
      'points-generation-2/shipping-events',
      'points-generation-2/inventory-events',
    ]);
  });

  it.each(['orders-events', 'shipping-events', 'inventory-events'])(
    'names what is wrong with a group and its topic %s, whichever of its topics that is',
    async (topic) => {
      const findings = await examineBroker(broker({ [`points-generation-2/${topic}`]: unordered }), { registered });
      expect(findings).toMatchObject([{ severity: 'error', check: 'topic', mend: 'mqadmin updateSubGroup -o true' }]);
    },
  );

  it('names what is wrong with a group once, though it is so for each of its topics, and goes on with the others', async () => {
    const refusals = Object.fromEntries(
      registered[1]!.topics.map((topic) => [`points-generation-2/${topic}`, unordered]),
    );
    const findings = await examineBroker(broker({ ...refusals, 'shipping-events': missing }), { registered });
    expect(findings.map(({ text }) => text)).toEqual([
      'RocketMQ has no topic shipping-events.',
      'Consumer group points-generation-2 reads out of order; accepted: ordered consumption.',
    ]);
  });

  it('asks for the topics that are named, in place of those of the groups', async () => {
    const sound = broker({});
    await examineBroker(sound, { registered: [], topics: ['b', 'a'] });
    expect(sound.asked).toEqual(['b', 'a']);
  });

  it('ends where the broker does not answer, and says so', async () => {
    const silent = broker({
      'orders-events': new NightporterError('NP_BROKER_UNAVAILABLE', 'RocketMQ could not be asked.'),
    });
    expect(await examineBroker(silent, { registered })).toMatchObject([
      { severity: 'error', text: 'RocketMQ could not be asked. What follows was not looked at.' },
    ]);
    expect(silent.asked).toEqual(['inventory-events', 'orders-events']);
  });

  it('rejects where the check itself is wrong', async () => {
    await expect(examineBroker(broker({ 'orders-events': new TypeError('a bug') }), { registered })).rejects.toThrow(
      'a bug',
    );
  });

  it('says what is missing where there is no broker to ask', () => {
    expect(brokerNotAsked('no --rocketmq-endpoints')).toMatchObject({ severity: 'note', mend: null });
  });
});
