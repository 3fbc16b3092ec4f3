import type { InboxDocument } from '@nightporter/mongo';
import type { EventId } from '@nightporter/protocol';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildPrograms } from '../../e2e/programs.js';
import { showFigures } from '../../support/figures.js';
import { JOURNAL_PROGRAMS } from '../support/journal-group.js';
import { expectAllOnce } from '../support/judge.js';
import { openOperateWorld, traffic, type OperateWorld } from '../support/operate-world.js';
import {
  NOTHING,
  SIGNED,
  commitOne,
  effectsOf,
  keyOf,
  mendingOf,
  prove,
  rowOf,
  timelineOf,
  untilStatus,
} from '../support/seeded-fault.js';

let world: OperateWorld;
let id: EventId;

beforeAll(async () => {
  buildPrograms(JOURNAL_PROGRAMS, 'services/cli');
  world = await openOperateWorld();
  await world.startWorker();
});
afterAll(() => world.close());

describe('audit, doctor and timeline', () => {
  it('name nothing of a clean system, while events come and at rest', async (context) => {
    const load = traffic(world, 'clean');
    const during = await world.operator.run(['audit']);
    const committed = await load;
    await world.untilRest();
    expect(during).toMatchObject({ exit: 0, json: { differences: [] } });
    expect(await world.look()).toEqual(NOTHING);
    const { effects } = await expectAllOnce(world, world.group);
    showFigures(context, { committed, effects, differences: 0, findings: 0 });
  });

  it('name an event that the broker has lost, and a replay brings it', (context) =>
    prove(world, context, {
      name: 'lost',
      async seed() {
        // A worker that runs would find it by its own sweep before anybody asks.
        await world.stopWorker();
        world.carriage.set('lost', 'never');
        id = await commitOne(world, 'lost');
        await untilStatus(world, id, 'PUBLISHED');
      },
      audit: () => [['missing', world.group.group, id, keyOf('lost'), 1]],
      async timeline() {
        const found = await timelineOf(world, id);
        expect(found).toMatchObject({ relay: { kind: 'published' }, groups: [{ verdict: { kind: 'not-received' } }] });
      },
      async mend(look) {
        const command = `nightporter replay ${world.group.group} --aggregates ${keyOf('lost')} ${SIGNED}`;
        expect(mendingOf(look)).toBe(command);
        await world.operator.mend(command);
        expect(await world.group.parked.countDocuments({ 'event.eventId': id })).toBe(1);
        await world.startWorker();
        await world.untilRest();
        expect(await effectsOf(world, 'lost')).toEqual([1]);
      },
    }));

  it('name an inbox record that is gone', async (context) => {
    const { group, inbox } = world.group;
    let record: InboxDocument | null = null;
    await prove(world, context, {
      name: 'record',
      async seed() {
        id = await commitOne(world, 'record');
        await world.untilRest();
        record = await inbox.findOneAndDelete({ eventId: id });
      },
      audit: () => [['missing', group, id, keyOf('record'), 1]],
      async timeline() {
        expect(await timelineOf(world, id)).toMatchObject({
          groups: [{ verdict: { kind: 'settled-unrecorded', mayHaveExpired: false } }],
        });
      },
      async mend(look) {
        expect(mendingOf(look)).toContain('Where its effect is there: restore its record from a backup.');
        expect(await effectsOf(world, 'record')).toEqual([1]);
        await inbox.insertOne(record!);
      },
    });
  });

  it('name an event that the consumer has skipped, and what they say has it applied', (context) =>
    prove(world, context, {
      name: 'skipped',
      async seed() {
        await commitOne(world, 'skipped');
        await world.untilRest();
        // One too far: the group takes what comes next for a repeat.
        const aggregate = keyOf('skipped') as never;
        const moved = await world.group.positions.updateOne({ aggregate }, { $inc: { version: 1 } });
        expect(moved.modifiedCount).toBe(1);
        id = await commitOne(world, 'skipped');
        await untilStatus(world, id, 'PUBLISHED');
      },
      audit: () => [['missing', world.group.group, id, keyOf('skipped'), 2]],
      async timeline() {
        const verdict = { kind: 'settled-unrecorded', position: 2, mayHaveExpired: false };
        expect(await timelineOf(world, id)).toMatchObject({ groups: [{ verdict }] });
      },
      async mend(look) {
        expect(await effectsOf(world, 'skipped')).toEqual([1]);
        await world.operator.mend(mendingOf(look));
        await world.untilRest();
        expect(await effectsOf(world, 'skipped')).toEqual([1, 2]);
      },
    }));

  it('name a payload that was altered on its way, in place of which the written one took effect', (context) =>
    prove(world, context, {
      name: 'altered',
      async seed() {
        world.carriage.set('altered', 'altered');
        id = await commitOne(world, 'altered');
        await world.untilRest();
      },
      audit: () => [['set-aside', world.group.group, id, keyOf('altered'), 1]],
      doctor: [['warning', 'group']],
      async timeline() {
        const { groups, steps } = await timelineOf(world, id);
        expect(groups).toMatchObject([{ verdict: { kind: 'settled', outcome: 'applied' } }]);
        const texts = steps.filter(({ kind }) => kind === 'set-aside').map(({ text }) => text);
        expect(texts.join()).toContain('NP_DIGEST_MISMATCH');
      },
      async mend(look) {
        expect(mendingOf(look)).toMatch(/^nightporter dead dismiss \S+ "\S+" --by <you> --reason <why>$/);
        await world.operator.mend(mendingOf(look));
      },
    }));

  it('name a payload that was altered together with its digest, which nothing else can see', (context) =>
    prove(world, context, {
      name: 'forged',
      async seed() {
        world.carriage.set('forged', 'forged');
        id = await commitOne(world, 'forged');
        await world.untilRest();
      },
      audit: () => [['altered', world.group.group, id, keyOf('forged'), 1]],
      async mend(look) {
        // Nobody but a person can undo what was done with it; then the record is set right.
        expect(look.audit[0]?.mend).toBeNull();
        const { digest } = await rowOf(world, id);
        await world.group.inbox.updateOne({ eventId: id }, { $set: { digest, appliedDigest: digest } });
      },
    }));
});
