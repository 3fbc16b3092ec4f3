import type { OutboxDocument } from '@nightporter/contracts';
import type { MongoClient } from 'mongodb';
import { describe, expect, it } from 'vitest';
import { createDatabaseNow, datedByDatabase } from './database-date.js';

const byProducer = new Date('2030-01-01T00:00:00Z');
const document = { _id: 'e', createdAt: byProducer, updatedAt: byProducer } as unknown as OutboxDocument;

describe('the date of an outbox document', () => {
  it('is the database’s, however wrong the producer’s clock is', async () => {
    const databaseTime = new Date('2026-01-01T00:00:00Z');
    const [dated] = await datedByDatabase([document], () => Promise.resolve(databaseTime));
    expect(dated).toMatchObject({ createdAt: databaseTime, updatedAt: databaseTime });
  });

  it('is the producer’s where the database cannot be asked', async () => {
    const dated = await datedByDatabase([document], () => Promise.reject(new Error('away')));
    expect(dated).toEqual([document]);
  });

  it('costs no question for each document', async () => {
    let asked = 0;
    const command = () => {
      asked += 1;
      return Promise.resolve({ localTime: new Date('2026-01-01T00:00:00Z') });
    };
    const now = createDatabaseNow({ db: () => ({ command }) } as unknown as MongoClient);
    const first = await now();
    expect((await now()).getTime()).toBeGreaterThanOrEqual(first.getTime());
    expect(asked).toBe(1);
  });
});
