import { ProblemError } from '@nightporter/http';
import { createRetention, type Destination } from '@nightporter/ledger';
import { namespace, type ArchiveFiles } from '@nightporter/protocol';
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod';
import { problem, producerUnknown } from '../http/problems.js';
import { answers } from './answers.js';
import { assertConfirmed } from './confirmed.js';
import type { Operations } from './operations.js';
import * as requests from './requests.js';

export interface RetentionRouteOptions {
  readonly operations: Operations;
  /** Where files go; null: nowhere. */
  readonly archive: ArchiveFiles | null;
}

const HOUR_MS = 3_600_000;

/** Retention of one outbox by hand, on record with who asked for it. It ends with its request; what was moved stands. */
export const retentionRoute: FastifyPluginCallbackZod<RetentionRouteOptions> = (app, { archive, operations }, done) => {
  app.post(
    '/outboxes/:producer/retention',
    {
      schema: {
        tags: ['outbox'],
        summary: 'Moves published rows that are old enough, and that every group has passed, out of an outbox',
        params: requests.outboxParams,
        body: requests.retentionBody,
        response: answers.retained,
      },
    },
    async ({ body, params: { producer } }, reply) => {
      const { by, confirm, force, reason } = body;
      assertConfirmed(confirm, producer);
      const { producers } = await operations.deployment();
      const place = producers.find(({ database }) => database === producer);
      if (place === undefined)
        throw producerUnknown(
          producer,
          producers.map(({ database }) => database),
        );
      const retention = createRetention({
        client: place.client,
        namespace: namespace(`${producer}.outbox`),
        destination: destinationOf(body, archive),
        afterMs: body.afterHours * HOUR_MS,
        archiveMs: body.archiveDays === null ? null : body.archiveDays * 24 * HOUR_MS,
      });
      return operations.alone('retention', async ({ signal, stop }) => {
        reply.raw.once('close', stop);
        return retention.run({ forced: force, operator: { by, reason }, signal });
      });
    },
  );
  done();
};

function destinationOf(
  { bucket, to }: { readonly to: 'delete' | 'collections' | 'files'; readonly bucket: 'day' | 'month' },
  archive: ArchiveFiles | null,
): Destination {
  if (to === 'delete') return { kind: 'delete' };
  if (to === 'collections') return { kind: 'collections', bucket };
  if (archive !== null) return { kind: 'files', files: archive };
  const detail = 'files need a folder; accepted: ARCHIVE_FOLDER set, or another destination';
  throw new ProblemError(problem('refused', detail, [{ pointer: '#/to', detail: 'is files, and there is no folder' }]));
}
