import type { OutboxDocument } from '@nightporter/contracts';
import type { EventId } from '@nightporter/protocol';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildPrograms, until } from '../../e2e/programs.js';
import { showFigures } from '../../support/figures.js';
import { createTopic, sharedStack } from '../../support/stack.js';
import { JOURNAL_PROGRAMS } from '../support/journal-group.js';
import { LIMIT_MS, openOperateWorld, type Look, type OperateWorld } from '../support/operate-world.js';
import {
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
import { wrongClock } from '../support/wrong-clock.js';

const HOUR_MS = 3_600_000;

let world: OperateWorld;
let id: EventId;

beforeAll(async () => {
  buildPrograms(JOURNAL_PROGRAMS, 'services/cli');
  world = await openOperateWorld();
  await world.startWorker();
});
afterAll(() => world.close());

describe('audit, doctor and timeline', () => {
  it('name an event that the relay has given up, and have it sent', (context) =>
    prove(world, context, {
      name: 'dead',
      async seed() {
        world.carriage.set('dead', 'refused');
        id = await commitOne(world, 'dead');
        await untilStatus(world, id, 'DEAD');
      },
      audit: () => [['dead-in-relay', null, id, keyOf('dead'), 1]],
      doctor: [['warning', 'outbox']],
      async timeline() {
        const { exit, groups, mend, relay } = await timelineOf(world, id);
        expect([exit, mend]).toEqual([1, `nightporter outbox retry ${id} ${SIGNED}`]);
        expect(relay).toMatchObject({
          kind: 'dead',
          lastError: expect.stringContaining('told to refuse it') as string,
        });
        expect(groups).toMatchObject([{ verdict: { kind: 'not-published' } }]);
      },
      async mend(look) {
        world.carriage.delete('dead');
        await world.operator.mend(mendingOf(look));
        await world.untilRest();
        expect(await effectsOf(world, 'dead')).toEqual([1]);
      },
    }));

  it('name a lane that is stuck, and the event that holds it', async (context) => {
    let behind: EventId;
    await prove(world, context, {
      name: 'stuck',
      async seed() {
        world.carriage.set('stuck', 'refused');
        id = await commitOne(world, 'stuck');
        await untilStatus(world, id, 'DEAD');
        behind = await commitOne(world, 'stuck');
        // As if it had waited for long.
        await world.outbox.updateOne({ _id: behind }, { $set: { createdAt: new Date(Date.now() - 120_000) } });
      },
      audit: () => [
        ['dead-in-relay', null, id, keyOf('stuck'), 1],
        ['unpublished', null, behind, keyOf('stuck'), 2],
      ],
      doctor: [
        ['warning', 'outbox'],
        ['error', 'outbox'],
      ],
      async timeline() {
        const { exit, mend, relay } = await timelineOf(world, behind);
        expect(relay).toMatchObject({ kind: 'behind', first: { eventId: id, status: 'DEAD', version: 1 } });
        expect([exit, mend]).toEqual([1, `nightporter outbox retry ${id} ${SIGNED}`]);
      },
      async mend() {
        world.carriage.delete('stuck');
        await world.operator.mend((await timelineOf(world, behind)).mend ?? '');
        await world.untilRest();
        expect(await effectsOf(world, 'stuck')).toEqual([1, 2]);
      },
    });
  });

  it('name a gap in the outbox', async (context) => {
    let row: OutboxDocument | null = null;
    await prove(world, context, {
      name: 'gap',
      async seed() {
        await world.commit([{ aggregateId: 'gap' }]);
        id = await commitOne(world, 'gap');
        await world.commit([{ aggregateId: 'gap' }]);
        await world.untilRest();
        row = await world.outbox.findOneAndDelete({ _id: id });
      },
      audit: () => [['gap', null, null, keyOf('gap'), 2]],
      async timeline() {
        const { found } = await world.timeline(id);
        expect(found).toMatchObject({ kind: 'only-in-groups', groups: [{ verdict: { outcome: 'applied' } }] });
      },
      async mend(look) {
        expect(mendingOf(look)).toBe(`Restore it to ${world.producer}.outbox from a backup`);
        await world.outbox.insertOne(row!);
      },
    });
  });

  it('name a row whose status was changed by hand, which neither relay nor groups would ever come upon', (context) =>
    prove(world, context, {
      name: 'by-hand',
      async seed() {
        id = await commitOne(world, 'by-hand');
        await world.untilRest();
        await world.outbox.updateOne({ _id: id }, { $set: { publishedAt: null } });
      },
      audit: () => [['altered-status', null, id, keyOf('by-hand'), 1]],
      async mend(look) {
        expect(mendingOf(look)).toContain('updateOne');
        await world.operator.mend(mendingOf(look));
        await world.untilRest();
        expect(await effectsOf(world, 'by-hand')).toEqual([1]);
      },
    }));

  it('name a document in the outbox that no emit() has written', (context) =>
    prove(world, context, {
      name: 'foreign',
      async seed() {
        await world.outbox.insertOne({ _id: 'somebody-else', hello: 'world' } as never);
      },
      audit: () => [['foreign', null, 'somebody-else', null, null]],
      async timeline() {
        const { exit, found } = await world.timeline('somebody-else');
        expect([exit, found.kind]).toEqual([1, 'unknown']);
        expect(found.notKnown.join()).toContain('no emit() has written');
      },
      mend: (look) => world.operator.mend(mendingOf(look)),
    }));

  it('name a clock that is off', async (context) => {
    await prove(world, context, {
      name: 'clock',
      async seed() {
        const { exit, json } = await world.operator.runProcess(['doctor'], wrongClock(HOUR_MS));
        const [finding, ...others] = (json as Look['doctor']).filter(({ severity }) => severity !== 'note');
        expect([exit, finding?.severity, finding?.check, others]).toEqual([1, 'warning', 'clock', []]);
        const offMs = Number(/(\d+) ms behind/.exec(finding?.text ?? '')?.[1]);
        expect(Math.abs(offMs - HOUR_MS)).toBeLessThan(60_000);
        expect(finding?.mend).toContain('set-ntp');
      },
      mend: () => Promise.resolve(),
    });
    showFigures(context, { 'named by the doctor': 'clock' });
  });

  it('name a topic of the wrong type, and what waits for it', async (context) => {
    let version = 0;
    await prove(world, context, {
      name: 'topic',
      async seed() {
        const before = world.publisher.failed;
        await createTopic({ name: world.topic, type: 'NORMAL' });
        // The broker's proxy takes what it takes until it has heard of the change.
        const isRefused = async (): Promise<boolean> => {
          id = await commitOne(world, 'topic');
          const isDecided = async () =>
            world.publisher.failed > before || (await rowOf(world, id)).status === 'PUBLISHED';
          await until('it is sent or refused', isDecided, LIMIT_MS);
          return world.publisher.failed > before;
        };
        await until('the topic takes nothing', isRefused, LIMIT_MS);
        version = (await rowOf(world, id)).aggregateVersion;
      },
      audit: () => [['unpublished', null, id, keyOf('topic'), version]],
      doctor: [['error', 'topic']],
      async timeline() {
        expect((await timelineOf(world, id)).relay.kind).toBe('waiting');
      },
      async mend({ doctor: [finding] }) {
        expect(finding?.text).toContain(`Topic ${world.topic} takes NORMAL messages; accepted: FIFO`);
        expect(finding?.mend).toContain(`-t ${world.topic}`);
        expect(finding?.mend).toContain('+message.type=FIFO');
        const queues = Number(/-w (\d+)/.exec(finding?.mend ?? '')?.[1]);
        await sharedStack().createTopic({ name: world.topic, type: 'FIFO', queues });
        await world.untilRest();
      },
    });
  });
});
