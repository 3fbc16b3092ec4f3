/**
 * One run of retention that freezes at a point of its way and says so, to be killed there: nothing that it has begun goes on, and nothing that
 * it would do next is done. FREEZE_AT is `before` or `after`, a command of the database or a method of the archive, the beginning of the
 * collection's name (which may be empty), and the how-manieth: `before delete outbox 2`.
 */
import { openArchive } from '@nightporter/archive';
import { createRetention, type Destination } from '@nightporter/ledger';
import type { ArchiveFiles } from '@nightporter/mongo';
import { namespace } from '@nightporter/protocol';
import { MongoClient, type Binary } from 'mongodb';
import { writeSync } from 'node:fs';

const { ARCHIVE = '', BATCH_ROWS = '', FREEZE_AT = '', MONGODB_URI = '', OUTBOX = '' } = process.env;
const STANDARD_OUTPUT = 1;

/** Of the last transaction, in base64: it stays open at the server when the process is gone. */
let session = 'none';
let left = Number(FREEZE_AT.split(' ').at(-1));

/** Blocks the process where it is, rather than waiting: no answer is read and no timer runs any more. */
function pass(when: 'before' | 'after', name: string, collection = ''): void {
  const [wantedWhen, wantedName, ...rest] = FREEZE_AT.split(' ');
  const prefix = rest.length > 1 ? rest[0] : '';
  if (wantedWhen !== when || wantedName !== name || !collection.startsWith(prefix ?? '')) return;
  left -= 1;
  if (left > 0) return;
  writeSync(STANDARD_OUTPUT, `frozen in session ${session}\n`);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}

function freezing(files: ArchiveFiles): ArchiveFiles {
  return {
    async write(name, content) {
      pass('before', 'write');
      await files.write(name, content);
      pass('after', 'write');
    },
    read: (name) => files.read(name),
    remove: (name) => files.remove(name),
  };
}

const client = new MongoClient(MONGODB_URI, { monitorCommands: true });
const collections = new Map<number, string>();
client.on('commandStarted', ({ command, commandName, requestId }) => {
  const collection: unknown = command[commandName];
  const { autocommit, lsid } = command as { autocommit?: boolean; lsid?: { id: Binary } };
  if (autocommit === false && lsid !== undefined) session = lsid.id.toString('base64');
  collections.set(requestId, typeof collection === 'string' ? collection : '');
  pass('before', commandName, collections.get(requestId));
});
client.on('commandSucceeded', ({ commandName, requestId }) => {
  pass('after', commandName, collections.get(requestId));
  collections.delete(requestId);
});
const destination: Destination =
  ARCHIVE === ''
    ? { kind: 'collections', bucket: 'day' }
    : { kind: 'files', files: freezing(await openArchive(ARCHIVE)) };
const retention = createRetention({
  client,
  namespace: namespace(OUTBOX),
  destination,
  afterMs: 7 * 86_400_000,
  batchRowsMax: Number(BATCH_ROWS),
  pauseMs: 0,
});
const { rows } = await retention.run();
writeSync(STANDARD_OUTPUT, `ended ${rows}\n`);
await client.close();
