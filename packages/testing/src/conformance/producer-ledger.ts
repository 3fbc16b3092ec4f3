import type { AggregatePlace, ProducerLedger } from '@nightporter/consumer';
import { digestOf, envelopeOf, type OutboxRow } from '@nightporter/contracts';
import { aggregateKey, aggregateVersion, epoch } from '@nightporter/protocol';
import type { OutboxMarker } from '@nightporter/relay';
import { describe, expect, it } from 'vitest';
import type { OutboxFixture } from './outbox-fixture.js';
import { uniqueId } from './samples.js';

export interface LedgerFixture extends OutboxFixture {
  readonly ledger: ProducerLedger;
  readonly marker: OutboxMarker;
  /** The topic of what `commit` writes. */
  readonly topic: string;
  /** Makes a row DEAD with a request to skip it, and PENDING again. */
  readonly skip: (row: OutboxRow) => Promise<void>;
  readonly retire: (row: OutboxRow, how: 'archive' | 'delete') => Promise<void>;
  /** Lets the database's clock go on. */
  readonly passTime: (byMs: number) => Promise<void>;
}

const LAG_MS = 200;

/** Every ledger of a producer keeps to this. The fixture brings an empty outbox for each test. */
export function producerLedgerConformance(name: string, makeFixture: () => Promise<LedgerFixture>): void {
  describe(`${name} as a producer’s ledger`, () => {
    describeWalk(makeFixture);
    describeVersions(makeFixture);
  });
}

function describeWalk(makeFixture: () => Promise<LedgerFixture>): void {
  it('walks what was published, page by page, each row once and in the order of publication', async () => {
    const fixture = await makeFixture();
    const rows = await fixture.commit([1, 2, 3, 4, 5].map(() => ({ aggregateId: uniqueId('a') })));
    for (const row of rows.slice(0, 4).reverse()) {
      await publish(fixture, [row]);
      await fixture.passTime(5);
    }
    await fixture.passTime(LAG_MS + 50);
    const seen = await walk(fixture, { limit: 3 });
    expect(seen).toEqual(rows.slice(0, 4).reverse().map(referenceOf));
  });

  it('counts what was published after a moment, the archive included, for people who wait', async () => {
    const fixture = await makeFixture();
    const rows = await fixture.commit([1, 2, 3, 4].map(() => ({ aggregateId: uniqueId('a') })));
    await publish(fixture, rows.slice(0, 3));
    await fixture.retire(rows[0]!, 'archive');
    expect(await fixture.ledger.countPublished?.(0)).toBe(3);
    await fixture.passTime(LAG_MS + 50);
    const { toMs } = await fixture.ledger.readPublished({
      topics: [fixture.topic],
      afterMs: 0,
      lagMs: LAG_MS,
      limit: 10,
      withArchive: true,
    });
    expect(await fixture.ledger.countPublished?.(toMs)).toBe(0);
  });

  it('never parts rows of one moment, so that none is skipped', async () => {
    const fixture = await makeFixture();
    const rows = await fixture.commit([1, 2, 3, 4, 5, 6, 7].map(() => ({ aggregateId: uniqueId('a') })));
    await publish(fixture, rows);
    await fixture.passTime(LAG_MS + 50);
    const seen = await walk(fixture, { limit: 2 });
    expect(seen.map(({ eventId }) => eventId).sort()).toEqual(rows.map(({ eventId }) => eventId).sort());
  });

  it('leaves alone what was published within the lag, and comes to it later', async () => {
    const fixture = await makeFixture();
    await publish(fixture, await fixture.commit([{ aggregateId: uniqueId('a') }]));
    const request = { topics: [fixture.topic], lagMs: 400, limit: 10, withArchive: false };
    const early = await fixture.ledger.readPublished({ ...request, afterMs: 0 });
    expect(early).toMatchObject({ rows: [], isEnd: true });
    await fixture.passTime(450);
    const late = await fixture.ledger.readPublished({ ...request, afterMs: early.toMs });
    expect(late.rows).toHaveLength(1);
    expect(late.toMs).toBeGreaterThan(early.toMs);
  });

  it('begins before the beginning where an overlap leads there', async () => {
    const fixture = await makeFixture();
    await publish(fixture, await fixture.commit([{ aggregateId: uniqueId('a') }]));
    await fixture.passTime(LAG_MS + 50);
    const request = { topics: [fixture.topic], lagMs: LAG_MS, limit: 10, withArchive: false };
    expect((await fixture.ledger.readPublished({ ...request, afterMs: -30_000 })).rows).toHaveLength(1);
  });

  it('returns the group’s topics only', async () => {
    const fixture = await makeFixture();
    await publish(fixture, await fixture.commit([{ aggregateId: uniqueId('a') }]));
    await fixture.passTime(LAG_MS + 50);
    const request = { lagMs: LAG_MS, limit: 10, afterMs: 0, withArchive: false };
    expect((await fixture.ledger.readPublished({ ...request, topics: ['another'] })).rows).toEqual([]);
    expect((await fixture.ledger.readPublished({ ...request, topics: ['another', fixture.topic] })).rows).toHaveLength(
      1,
    );
  });

  it('walks the archive too for a group that came later', async () => {
    const fixture = await makeFixture();
    const rows = await fixture.commit([1, 2, 3].map(() => ({ aggregateId: uniqueId('a') })));
    await publish(fixture, rows);
    await fixture.retire(rows[0]!, 'archive');
    await fixture.retire(rows[1]!, 'archive');
    await fixture.passTime(LAG_MS + 50);
    expect(await walk(fixture, { limit: 1, withArchive: true })).toHaveLength(3);
    expect(await walk(fixture, { limit: 1 })).toHaveLength(1);
  });
}

function describeVersions(makeFixture: () => Promise<LedgerFixture>): void {
  it('gives a published version as it was published', async () => {
    const fixture = await makeFixture();
    const [row] = await fixture.commit([{ aggregateId: uniqueId('a') }]);
    await publish(fixture, [row!]);
    const [answer] = await fixture.ledger.readVersions([placeOf(row!)]);
    // The sweep asks by the same moments.
    const publishedAtMs = answer?.kind === 'published' ? answer.publishedAtMs : Number.NaN;
    await fixture.passTime(LAG_MS);
    const request = { topics: [fixture.topic], lagMs: 0, limit: 10, withArchive: false };
    const { rows } = await fixture.ledger.readPublished({ ...request, afterMs: publishedAtMs - 1 });
    expect(rows).toEqual([referenceOf(row!)]);
    expect(answer).toEqual({
      kind: 'published',
      publishedAtMs,
      event: {
        envelope: envelopeOf(row!, 'original'),
        aggregate: aggregateKey(row!),
        topic: fixture.topic,
        form: 'original',
        digest: row!.digest,
        messageId: `message of ${row!.eventId}`,
        // Where a store dates its rows.
        createdAtMs: answer?.kind === 'published' ? answer.event.createdAtMs : undefined,
      },
    });
  });

  it('gives a skipped version as the tombstone that was published', async () => {
    const fixture = await makeFixture();
    const [row] = await fixture.commit([{ aggregateId: uniqueId('a') }]);
    await fixture.skip(row!);
    await publish(fixture, [{ ...row!, form: 'tombstone' }]);
    const [answer] = await fixture.ledger.readVersions([placeOf(row!)]);
    const envelope = envelopeOf(row!, 'tombstone');
    expect(answer).toMatchObject({
      kind: 'published',
      event: { envelope, form: 'tombstone', digest: digestOf(envelope) },
    });
  });

  it('answers for the place, also where the event that was seen there is told, and where that was another', async () => {
    const fixture = await makeFixture();
    const [here, moved, gone] = await Promise.all(
      ['a', 'b', 'c'].map(async (name) => (await fixture.commit([{ aggregateId: uniqueId(name) }]))[0]!),
    );
    await publish(fixture, [here!, moved!, gone!]);
    await fixture.retire(moved!, 'archive');
    await fixture.retire(gone!, 'delete');
    const places = [here!, moved!, gone!].map(placeOf);
    const answers = await fixture.ledger.readVersions(places);
    expect(answers.map(({ kind }) => kind)).toEqual(['published', 'published', 'deleted']);
    expect(await fixture.ledger.readVersions([here!, moved!, gone!].map(referenceOf))).toEqual(answers);
    const misled = { ...placeOf(moved!), eventId: here!.eventId };
    expect(await fixture.ledger.readVersions([misled, referenceOf(gone!)])).toEqual(answers.slice(1));
  });

  it('explains what cannot be had, each in its place', async () => {
    const fixture = await makeFixture();
    const [waiting] = await fixture.commit([{ aggregateId: uniqueId('a') }]);
    const [dead] = await fixture.commit([{ aggregateId: uniqueId('b') }]);
    const [deleted] = await fixture.commit([{ aggregateId: uniqueId('c') }]);
    const [archived] = await fixture.commit([{ aggregateId: uniqueId('d') }]);
    await fixture.marker.mark([
      {
        kind: 'failed',
        namespace: dead!.namespace,
        eventId: dead!.eventId,
        relay: 'relay',
        epoch: epoch(1),
        revision: dead!.revision,
        status: 'DEAD',
        retryCount: 1,
        retryInMs: 0,
        error: 'refused',
      },
    ]);
    await publish(fixture, [deleted!, archived!]);
    await fixture.retire(deleted!, 'delete');
    await fixture.retire(archived!, 'archive');
    const unborn = { ...placeOf(waiting!), version: aggregateVersion(2) };
    const answers = await fixture.ledger.readVersions([
      unborn,
      ...[waiting, dead, deleted, archived].map((row) => placeOf(row!)),
    ]);
    expect(answers.map(({ kind }) => kind)).toEqual(['not-committed', 'unpublished', 'dead', 'deleted', 'published']);
  });
}

async function publish({ marker }: LedgerFixture, rows: readonly OutboxRow[]): Promise<void> {
  await marker.mark(
    rows.map(({ eventId, form, namespace, topic }) => ({
      kind: 'published',
      namespace,
      eventId,
      relay: 'relay',
      epoch: epoch(1),
      messageId: `message of ${eventId}`,
      topic,
      form,
      sinceCaptureMs: 1,
    })),
  );
}

async function walk(
  { ledger, topic }: LedgerFixture,
  { limit, withArchive = false }: { limit: number; withArchive?: boolean },
): Promise<ReturnType<typeof referenceOf>[]> {
  const seen: ReturnType<typeof referenceOf>[] = [];
  let afterMs = 0;
  for (let pages = 0; pages < 20; pages += 1) {
    const page = await ledger.readPublished({ topics: [topic], afterMs, lagMs: LAG_MS, limit, withArchive });
    seen.push(...page.rows);
    if (page.isEnd) return seen;
    expect(page.toMs).toBeGreaterThan(afterMs);
    afterMs = page.toMs;
  }
  throw new Error('the walk does not end');
}

function placeOf(row: OutboxRow): AggregatePlace {
  return { aggregate: aggregateKey(row), version: row.aggregateVersion };
}

function referenceOf(row: OutboxRow): AggregatePlace & { eventId: OutboxRow['eventId'] } {
  return { ...placeOf(row), eventId: row.eventId };
}
