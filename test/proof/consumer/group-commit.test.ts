import { afterEach, expect, it } from 'vitest';
import { measureGroupCommit } from '../../../scripts/src/bench/group-commit.js';
import { showFigures } from '../../support/figures.js';
import { sharedStack } from '../../support/stack.js';
import { sized } from '../support/size.js';

const NUMBERS = new Map([
  ['messages', sized({ full: 3_000, small: 400 })],
  ['aggregates', sized({ full: 600, small: 100 })],
  ['rounds', sized({ full: 2, small: 1 })],
  ['loops', 4],
  ['batch', 32],
]);

/** Only at full size: how much faster a short run is depends on what else the machine does; that it is faster does not. */
const RATIO_MIN = sized({ full: 3, small: 1 });

const undos: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const undo of undos.splice(0).reverse()) await undo();
});

it('group commit settles many events in one transaction and acknowledges them in one request, and none of them comes again', async (context) => {
  const { mongodbUri, rocketmqEndpoints, ...admin } = sharedStack();
  const { off, on, ratio } = await measureGroupCommit({
    stack: { mongodb: { uri: mongodbUri }, rocketmq: { ...admin, endpoints: rocketmqEndpoints } },
    numbers: NUMBERS,
    progress: () => undefined,
    atEnd: (undo) => undos.push(undo),
  });
  showFigures(context, {
    'events per s without group commit': off.perSecond,
    'events per s with group commit': on.perSecond,
    ratio,
    'events per transaction': on.perTransaction,
    'acknowledged per request': on.perAcknowledgeRequest,
    redelivered: off.redelivered + on.redelivered,
  });
  expect({ off: off.redelivered, on: on.redelivered }).toEqual({ off: 0, on: 0 });
  expect(off.perTransaction).toBeLessThanOrEqual(1);
  expect(on.perTransaction).toBeGreaterThan(4);
  expect(on.perAcknowledgeRequest).toBeGreaterThan(4);
  expect(ratio).toBeGreaterThan(RATIO_MIN);
});
