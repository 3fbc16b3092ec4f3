import type { AggregatePlace, LedgerAnswer, ProducerLedger } from '@nightporter/consumer';
import { decodeEnvelope } from '@nightporter/contracts';
import { NightporterError, aggregateVersion, eventId, type AggregateKey } from '@nightporter/protocol';
import type { z } from 'zod';
import { createLedgerClient, type LedgerClient, type LedgerServer } from './ledger-client.js';
import { PAGE_MAX, PLACES_MAX, countAnswer, publishedAnswer, versionsAnswer } from './wire.js';

/**
 * A producer's ledger as its ops API tells it. Besides what the port says it rejects with NP_CONFIG_INVALID where the token is refused, and
 * with NP_ARCHIVE_FAILED where the ops API cannot read an archive file.
 */
export function createHttpLedger(server: LedgerServer): ProducerLedger {
  const client = createLedgerClient(server);
  return {
    async readPublished(request) {
      const page = await client('reading published rows', {
        method: 'POST',
        path: '/ledger/published',
        body: { ...request, limit: Math.min(request.limit, PAGE_MAX) },
        answer: publishedAnswer,
      });
      const { isEnd, rows, toMs } = known(page);
      return {
        rows: rows.map((row) => ({
          eventId: eventId(row.eventId),
          aggregate: row.aggregate as AggregateKey,
          version: aggregateVersion(row.version),
        })),
        toMs,
        isEnd,
      };
    },
    async countPublished(afterMs) {
      const request = { method: 'POST', path: '/ledger/count', body: { afterMs }, answer: countAnswer } as const;
      return known(await client('counting published rows', request)).rows;
    },
    async readVersions(places) {
      const answers: LedgerAnswer[] = [];
      for (let from = 0; from < places.length; from += PLACES_MAX) {
        answers.push(...(await readSome(client, places.slice(from, from + PLACES_MAX))));
      }
      return answers;
    },
  };
}

async function readSome(client: LedgerClient, places: readonly AggregatePlace[]): Promise<readonly LedgerAnswer[]> {
  const operation = `reading ${places.length} versions`;
  const body = { places: places.map(({ aggregate, version }) => ({ aggregate, version })) };
  const { answers } = known(
    await client(operation, { method: 'POST', path: '/ledger/versions', body, answer: versionsAnswer }),
  );
  if (answers.length !== places.length) throw unreadable(`${answers.length} answers to ${places.length} questions`);
  return answers.map((answer, index) => answerOf(answer, places[index]?.aggregate));
}

type WireAnswer = z.infer<typeof versionsAnswer>['answers'][number];

function answerOf(answer: WireAnswer, aggregate: AggregateKey | undefined): LedgerAnswer {
  if (answer.kind !== 'published') return answer;
  const { body, digest, form, messageId, publishedAtMs, topic } = answer;
  const decoded = decodeEnvelope(Buffer.from(body, 'utf8'));
  if (decoded.kind === 'unreadable') throw unreadable(`the event of ${aggregate ?? 'nobody'}: ${decoded.reason}`);
  if (aggregate === undefined) throw unreadable('an answer that nobody asked for');
  return {
    kind: 'published',
    publishedAtMs,
    event: { envelope: decoded.envelope, aggregate, topic, form, digest, messageId },
  };
}

/** Requests about a whole ledger name no group that could be unknown. */
export function known<Answer>(answer: Answer | null): Answer {
  if (answer === null) throw unreadable('a group that is unknown, where none was asked for');
  return answer;
}

function unreadable(found: string): NightporterError {
  return new NightporterError('NP_STORE_UNAVAILABLE', `The ops API has answered with ${found}.`);
}
