/**
 * The real warehouse-worker, which ends itself by SIGKILL at the moment that DIE_AT names: what no signal from outside can hit.
 */
import { runService } from '@nightporter/runtime';
import { createWarehouseWorker, MANIFEST, type SessionPorts } from '@nightporter/warehouse-worker';

const dieInMerge = process.env['DIE_IN'] === 'merge';
let committed = false;

function die(): Promise<never> {
  process.kill(process.pid, 'SIGKILL');
  return new Promise(() => undefined);
}

function portsOf(ports: SessionPorts): SessionPorts {
  const { folder, store } = ports;
  const moment = process.env['DIE_AT'];
  let isMerging = false;
  return {
    ...ports,
    folder: {
      ...folder,
      write: async (name, content) => {
        if (moment === 'half-file' && name !== MANIFEST && isMerging === dieInMerge) {
          await folder.write(`${name}.partial`, content.slice(0, content.byteLength / 2));
          return die();
        }
        const version = await folder.write(name, content);
        if (moment === 'published' && name === MANIFEST && committed) return die();
        return version;
      },
      read: (name) => {
        // A merge begins by reading; landing reads nothing.
        if (name !== MANIFEST) isMerging = true;
        return folder.read(name);
      },
    },
    store: {
      ...store,
      staged: (max) => {
        isMerging = false;
        return store.staged(max);
      },
      commit: async (turn, change) => {
        const isWanted = change.replaced.length > 0 === dieInMerge;
        if (moment === 'renamed' && isWanted) return die();
        await store.commit(turn, change);
        if (moment === 'committed' && isWanted) return die();
        if (isWanted) committed = true;
      },
    },
  };
}

await runService(createWarehouseWorker({ portsOf }));
