import { problemAnswers } from '@nightporter/http';
import { z } from 'zod';
import * as examples from './examples.js';
import * as acts from './act-shapes.js';
import * as questions from './question-shapes.js';

/**
 * The answers of a route: published with their shape and an example, and sent as the ledger gave them, since a shape that lags behind must
 * not keep an operator from what was found. A test holds answers against their acts.
 */
function answering(shape: z.ZodType, example: unknown) {
  const schema = z.toJSONSchema(shape, { target: 'openapi-3.0', io: 'output' });
  return { 200: z.unknown().meta({ ...schema, examples: [example] }), ...problemAnswers };
}

const stream = z
  .string()
  .describe('Server-sent events: `status` with the same as /status, or `unavailable` with a reason.')
  .meta({ examples: [`event: status\ndata: ${JSON.stringify(examples.status)}\n\n`] });

const tail = z
  .string()
  .describe('Server-sent events: `committed` with an event, as /events has it, or `unavailable` with a reason.')
  .meta({ examples: [`event: committed\ndata: ${JSON.stringify(examples.page.events[0])}\n\n`] });

function streaming(schema: z.ZodString) {
  const description = 'It goes on until one side ends it.';
  return { 200: { content: { 'text/event-stream': { schema } }, description }, ...problemAnswers };
}

export const answers = {
  live: streaming(stream),
  tail: streaming(tail),
  status: answering(questions.status, examples.status),
  relay: answering(questions.relay, examples.status.relay),
  page: answering(questions.page, examples.page),
  timeline: answering(questions.timeline, examples.timeline),
  history: answering(questions.history, examples.history),
  audit: answering(questions.audit, examples.audit),
  slo: answering(questions.slo, examples.slo),
  findings: answering(questions.findings, examples.findings),
  actions: answering(questions.actions, examples.actions),
  outboxRows: answering(acts.outboxRows, examples.outboxRows),
  deadLetters: answering(acts.deadLetters, examples.deadLetters),
  oneDeadLetter: answering(acts.oneDeadLetter, examples.oneDeadLetter),
  bulk: answering(acts.bulk, examples.bulk),
  setAside: answering(acts.setAside, examples.setAside),
  groups: answering(acts.groups, examples.groups),
  plan: answering(acts.plan, examples.plan),
  replayed: answering(acts.replayed, examples.replayed),
  removed: answering(acts.removed, examples.removed),
  retained: answering(acts.retained, examples.retained),
  done: answering(acts.done, examples.done),
  paused: answering(acts.paused, examples.done),
} as const;
