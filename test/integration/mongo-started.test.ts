import type { StartedRecords } from '@nightporter/consumer';
import { createGroupStores, ensureConsumerCollections } from '@nightporter/mongo';
import { eventId } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';

const shared = sharedDatabase();
const [one, two, three] = ['event-1', 'event-2', 'event-3'].map(eventId);

describe('the records of what is started, on MongoDB', () => {
  it('tell of an event that another owner has begun, and of none of our own', async () => {
    const { started } = await records();
    expect(await started.begin({ owner: 'first', loop: 0, events: [one!, two!] })).toEqual([]);
    expect(await started.begin({ owner: 'first', loop: 1, events: [two!] })).toEqual([]);
    expect(await started.begin({ owner: 'second', loop: 0, events: [three!, two!] })).toEqual([two]);
  });

  it('forget what a loop has begun once it begins something else', async () => {
    const { started } = await records();
    await started.begin({ owner: 'first', loop: 0, events: [one!] });
    await started.begin({ owner: 'first', loop: 0, events: [two!] });
    expect(await started.begin({ owner: 'second', loop: 0, events: [one!] })).toEqual([]);
    expect(await started.begin({ owner: 'third', loop: 0, events: [two!] })).toEqual([two]);
  });

  it('keep groups apart', async () => {
    const { started, database } = await records();
    const other = createGroupStores({ client: shared.client(), database, group: 'other' }).started;
    await started.begin({ owner: 'first', loop: 0, events: [one!] });
    expect(await other.begin({ owner: 'second', loop: 0, events: [one!] })).toEqual([]);
  });

  it('let at least one of two see the other when both begin an event at once', async () => {
    const { started } = await records();
    for (let round = 0; round < 10; round += 1) {
      const event = eventId(`contended ${round}`);
      const begin = (owner: string) => started.begin({ owner, loop: round, events: [event] });
      const seen = await Promise.all([begin('first'), begin('second')]);
      expect(seen.flat().length).toBeGreaterThan(0);
    }
  });
});

async function records(): Promise<{ started: StartedRecords; database: string }> {
  const database = shared.database('consumer');
  await ensureConsumerCollections(shared.client(), database);
  return { started: createGroupStores({ client: shared.client(), database, group: 'group' }).started, database };
}
