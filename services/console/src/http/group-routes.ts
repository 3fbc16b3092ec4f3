import { problemAnswers } from '@nightporter/http';
import { wire } from '@nightporter/ledger-http';
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod';
import type { Producer } from '../producers.js';
import { groupUnknown } from './problems.js';

const base = { tags: ['groups'], params: wire.groupParams };
const done = { 200: wire.done, ...problemAnswers };

/** A group's entry with a producer: what keeps retention from events that the group has still to see. */
export const groupRoutes: FastifyPluginCallbackZod<{ producerOf: (name: string) => Producer }> = (
  app,
  { producerOf },
  end,
) => {
  const register = {
    ...base,
    summary: 'Registers a group, or changes its topics',
    body: wire.registerRequest,
    response: { 200: wire.registerAnswer, ...problemAnswers },
  };
  app.put('/groups/:group', { schema: register }, async ({ body, params }) => {
    const { starting, topicsRemoved } = await producerOf(params.producer).register({ group: params.group, ...body });
    return { starting, topicsRemoved: [...topicsRemoved] };
  });

  const started = { ...base, summary: 'The positions of a start are set', body: wire.startedRequest, response: done };
  app.post('/groups/:group/started', { schema: started }, async ({ body, params }) => {
    await producerOf(params.producer).endStart({ group: params.group, sinceMs: body.sinceMs });
    return {};
  });

  const look = {
    ...base,
    summary: 'How far a group is',
    response: { 200: wire.standingAnswer, ...problemAnswers },
  };
  app.get('/groups/:group', { schema: look }, async ({ params: { group, producer } }) => {
    const standing = await producerOf(producer).registryOf(group).standing();
    if (standing === null) throw groupUnknown(producer, group);
    const { topics, ...rest } = standing;
    return topics === undefined ? rest : { ...rest, topics: [...topics] };
  });

  const claim = {
    ...base,
    summary: 'Claims the right to walk the ledger for a group, or renews it',
    body: wire.claimRequest,
    response: { 200: wire.claimAnswer, ...problemAnswers },
  };
  app.post('/groups/:group/claim', { schema: claim }, async ({ body, params }) => {
    const answer = await producerOf(params.producer).registryOf(params.group).claim(body);
    return answer.kind === 'claimed' ? { ...answer, topics: [...answer.topics] } : answer;
  });

  const advance = {
    ...base,
    summary: 'Everything published up to here is settled or parked in the group',
    body: wire.watermarkRequest,
    response: done,
  };
  app.put('/groups/:group/watermark', { schema: advance }, async ({ body, params }) => {
    await producerOf(params.producer).registryOf(params.group).advance(body);
    return {};
  });

  const release = { ...base, summary: 'Gives a claim up', body: wire.releaseRequest, response: done };
  app.post('/groups/:group/release', { schema: release }, async ({ body, params }) => {
    await producerOf(params.producer).registryOf(params.group).release(body.owner);
    return {};
  });
  end();
};
