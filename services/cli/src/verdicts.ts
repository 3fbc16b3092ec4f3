import type { GroupVerdict, RelayVerdict } from '@nightporter/ledger';
import { at } from './output.js';

/** Each verdict as half a sentence: "the relay …". */
export function sayRelay(verdict: RelayVerdict): string {
  switch (verdict.kind) {
    case 'published':
      return verdict.form === 'tombstone' ? 'has published a tombstone in its place' : 'has published it';
    case 'dead':
      return `has given it up after ${verdict.attempts} attempts (${verdict.lastError ?? 'no reason kept'}): retry or skip it`;
    case 'failing':
      return `failed to send it ${verdict.attempts} times (${verdict.lastError ?? 'no reason kept'}), and tries again at ${at(verdict.nextRetryAt)}`;
    case 'claimed':
      return `has it in hand (${verdict.by ?? 'nobody says which'})`;
    case 'behind': {
      const { eventId, status, version } = verdict.first;
      return `has to publish version ${version} of its aggregate first, event ${eventId}, which is ${status}`;
    }
    case 'paused': {
      const { at: since, by, reason, scope } = verdict.pause;
      const what = scope === 'all' ? 'is paused' : `is paused for ${scope}`;
      return `${what} by ${by} since ${at(since)} (${reason})`;
    }
    case 'no-relay':
      return 'is not there: nobody holds a lease';
    case 'waiting':
      return `will send it: it is its turn${verdict.relays === null ? '' : ` (${verdict.relays.join(', ')})`}`;
  }
}

export function sayGroup(verdict: GroupVerdict | null): string {
  if (verdict === null) return 'nobody says where its data is';
  switch (verdict.kind) {
    case 'settled':
      return `${verdict.outcome}${verdict.isEdited ? ', as an operator had edited it' : ''}`;
    case 'before-start':
      return verdict.reason === 'unavailable'
        ? `before its start: retention had deleted what is up to version ${verdict.startVersion}`
        : `before its start at version ${verdict.startVersion}`;
    case 'settled-unrecorded':
      return verdict.mayHaveExpired
        ? `settled: its position is ${verdict.position}; the record has expired, or was deleted`
        : `not on record, long before a record expires, although its position is ${verdict.position}: its record was deleted, or it was passed over`;
    case 'dead-letter':
      return `dead letter after ${verdict.attempts} attempts (${failure(verdict.failure)}): retry, edit or skip it`;
    case 'retrying':
      return verdict.failure === null
        ? `parked, and due at ${at(verdict.nextRetryAt)}`
        : `failed ${verdict.attempts} times (${failure(verdict.failure)}); tried again at ${at(verdict.nextRetryAt)}`;
    case 'behind': {
      const came = verdict.isReceived ? 'parked' : 'not received yet';
      if (verdict.first === null) return `${came}; a lower version is parked`;
      const { eventId, status, version } = verdict.first;
      return `${came}; waits for version ${version}, event ${eventId}, which is ${status === 'dead' ? 'a dead letter' : `parked (${status})`}`;
    }
    case 'gap':
      return `parked; version ${verdict.missingFrom} has not come, and is asked for`;
    case 'conflict':
      return `event ${verdict.other} has its version`;
    case 'not-published':
      return 'waits for the relay';
    case 'not-received':
      return 'not received yet; a message, or the sweep of the ledger, brings it';
    case 'lost':
      return `the sweep has passed it (${at(new Date(verdict.watermarkMs))}), and nothing of it is there: replay what is missing`;
  }
}

function failure(failed: { readonly code: string; readonly message: string } | null): string {
  return failed === null ? 'no reason kept' : `${failed.code}: ${failed.message}`;
}
