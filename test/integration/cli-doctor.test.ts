import { registerGroup } from '@nightporter/mongo';
import { expect, it } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { createGroup, createTopic, sharedStack, uniqueName } from '../support/stack.js';
import { cli } from './cli.support.js';
import { operationsFixture } from './operations.support.js';

const shared = sharedDatabase();

it('The doctor names a topic of the wrong type and a group that is missing at the broker, with the commands that mend them', async () => {
  const fixture = await operationsFixture(shared);
  const [wrong, right] = [uniqueName('wrong'), uniqueName('right')];
  await createTopic({ name: wrong, type: 'NORMAL' });
  await createTopic({ name: right });
  const [there, missing] = [uniqueName('there'), uniqueName('missing')];
  await createGroup({ name: there, topics: [right] });
  for (const group of [there, missing])
    await registerGroup(shared.client(), fixture.producer, { group, topics: [right] });
  const { rocketmqEndpoints } = sharedStack();
  const run = await cli(fixture, [
    'doctor',
    '--json',
    '--rocketmq-endpoints',
    rocketmqEndpoints,
    '--topics',
    `${wrong},${right}`,
  ]);
  const findings = (JSON.parse(run.out) as { check: string; text: string; mend: string }[]).filter(
    ({ check }) => check === 'topic',
  );
  const about = (name: string) => findings.filter(({ text }) => text.includes(name));
  expect(about(wrong)).toMatchObject([{ severity: 'error', mend: expect.stringContaining('mqadmin updateTopic') }]);
  expect(about(missing)).toMatchObject([
    { severity: 'error', mend: expect.stringContaining('mqadmin updateSubGroup') },
  ]);
  expect([...about(right), ...about(there)]).toEqual([]);
});
