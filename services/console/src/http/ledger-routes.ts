import type { AggregatePlace, LedgerAnswer } from '@nightporter/consumer';
import { encodeEnvelope } from '@nightporter/contracts';
import { problemAnswers } from '@nightporter/http';
import { wire } from '@nightporter/ledger-http';
import { aggregateVersion, type AggregateKey } from '@nightporter/protocol';
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod';
import type { z } from 'zod';
import type { Producer } from '../producers.js';

const base = { tags: ['ledger'], params: wire.producerParams };

/** Questions to a producer's ledger. They are read-only, and POST because a question is longer than a URL may be. */
export const ledgerRoutes: FastifyPluginCallbackZod<{ producerOf: (name: string) => Producer }> = (
  app,
  { producerOf },
  done,
) => {
  const published = {
    ...base,
    summary: 'Published rows, in the order of their publication',
    body: wire.publishedRequest,
    response: { 200: wire.publishedAnswer, ...problemAnswers },
  };
  app.post('/ledger/published', { schema: published }, async ({ body, params }) => {
    const { isEnd, rows, toMs } = await producerOf(params.producer).ledger.readPublished(body);
    return { rows: [...rows], toMs, isEnd };
  });

  const count = {
    ...base,
    summary: 'About how many rows were published after a moment',
    body: wire.countRequest,
    response: { 200: wire.countAnswer, ...problemAnswers },
  };
  app.post('/ledger/count', { schema: count }, async ({ body, params }) => ({
    rows: (await producerOf(params.producer).ledger.countPublished?.(body.afterMs)) ?? 0,
  }));

  const versions = {
    ...base,
    summary: 'What there is at versions of aggregates',
    body: wire.versionsRequest,
    response: { 200: wire.versionsAnswer, ...problemAnswers },
  };
  app.post('/ledger/versions', { schema: versions }, async ({ body, params }) => {
    const places = body.places.map(({ aggregate, version }): AggregatePlace => ({
      aggregate: aggregate as AggregateKey,
      version: aggregateVersion(version),
    }));
    const answers = await producerOf(params.producer).ledger.readVersions(places);
    return { answers: answers.map(wireAnswer) };
  });

  const heads = {
    ...base,
    summary: 'Where a new group starts in each aggregate',
    body: wire.headsRequest,
    response: { 200: wire.headsAnswer, ...problemAnswers },
  };
  app.post('/ledger/heads', { schema: heads }, async ({ body, params }) => {
    const { next, starts } = await producerOf(params.producer).readStarts(body);
    return { starts: starts.map(({ aggregate, version }) => ({ aggregate, version })), next };
  });
  done();
};

function wireAnswer(answer: LedgerAnswer): z.infer<typeof wire.versionsAnswer>['answers'][number] {
  if (answer.kind !== 'published') return answer;
  const { digest, envelope, form, messageId, topic } = answer.event;
  const body = Buffer.from(encodeEnvelope(envelope)).toString('utf8');
  return { kind: 'published', publishedAtMs: answer.publishedAtMs, body, topic, form, digest, messageId };
}
