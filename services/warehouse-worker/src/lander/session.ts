import { NightporterError } from '@nightporter/protocol';
import { compactionOf, type CompactionLimits, type LiveFile } from '../domain/compaction.js';
import { partitionsOf, type StagedEvent } from '../domain/facts.js';
import type { Row, TableName } from '../domain/tables.js';
import type { WarehouseFolder } from '../store/folder.js';
import { encodeManifest, MANIFEST, readFileOf, readManifest, sha256Of } from '../store/manifest.js';
import { encodeParquet } from '../store/parquet.js';
import type { Change, Turn, WarehouseStore } from '../store/warehouse-store.js';
import { fileNameOf, wasLeftBefore } from './file-names.js';

export interface SessionPorts {
  readonly store: WarehouseStore;
  readonly folder: WarehouseFolder;
  /** A new name's last part, never given before. */
  readonly newId: () => string;
  /** Told of what was landed, once the manifest names it. */
  readonly landed?: (landed: Landed) => void;
}

export interface Landed {
  /** From reading what was staged until the manifest named it, by the database's clock. */
  readonly durationMs: number;
  readonly files: readonly { readonly table: TableName; readonly rows: number }[];
  /** Of each event, how long after it occurred. */
  readonly queryableMs: readonly number[];
}

/**
 * What one turn does. Every file is written whole and under a name of its own before the transaction that makes it count; the manifest
 * follows the transaction. Whatever fails, the turn is over, and the next one begins with {@link LandingSession.open}: only then is it known which of
 * the files that were left will never count, because a commit whose answer was lost can no longer arrive behind the new epoch.
 */
export class LandingSession {
  readonly #ports: SessionPorts;
  readonly #turn: Turn;
  readonly #warehouse: string;
  readonly #live: Map<string, LiveFile>;
  #revision: number;
  #published: string | null = null;

  private constructor(ports: SessionPorts, turn: Turn, contents: Awaited<ReturnType<WarehouseStore['contents']>>) {
    this.#ports = ports;
    this.#turn = turn;
    this.#warehouse = contents.warehouse;
    this.#revision = contents.revision;
    this.#live = new Map(contents.live.map((file) => [file.name, file]));
  }

  /**
   * Begins a turn: publishes what the warehouse consists of, and removes what was left of turns before. Returns the names of that too.
   * Rejects with NP_WAREHOUSE_FAILED where folder and database are not of one warehouse, before anything is changed.
   */
  static async open(ports: SessionPorts, turn: Turn): Promise<{ session: LandingSession; removed: readonly string[] }> {
    const contents = await ports.store.contents();
    await assertOneWarehouse(ports.folder, contents);
    const session = new LandingSession(ports, turn, contents);
    await session.publish();
    return { session, removed: await session.#removeLeft() };
  }

  get revision(): number {
    return this.#revision;
  }

  get files(): number {
    return this.#live.size;
  }

  /** Lands the oldest staged events. Returns how many; they are in the manifest then. */
  async land(max: number): Promise<number> {
    const { store } = this.#ports;
    const events = await store.staged(max);
    if (events.length === 0) return 0;
    const addedAtMs = await store.nowMs();
    const added: LiveFile[] = [];
    for (const { table, day, rows } of partitionsOf(events))
      added.push(await this.#write(rows, { table, day, level: 0, addedAtMs }));
    await this.#change({ added, landed: events.map(({ eventId }) => eventId), replaced: [] });
    await this.#tell(events, added, addedAtMs);
    return events.length;
  }

  async #tell(events: readonly StagedEvent[], files: readonly LiveFile[], beganAtMs: number): Promise<void> {
    const { landed, store } = this.#ports;
    if (landed === undefined) return;
    const nowMs = await store.nowMs();
    const queryableMs = events.map(({ occurredAt }) => Math.max(0, nowMs - Date.parse(occurredAt)));
    landed({ durationMs: Math.max(0, nowMs - beganAtMs), files, queryableMs });
  }

  /** Merges small files of one day into one, where that is worth its work. Returns how many became one. */
  async compact(limits: CompactionLimits): Promise<number> {
    const { folder, store } = this.#ports;
    const nowMs = await store.nowMs();
    const step = compactionOf([...this.#live.values()], nowMs, limits);
    const [first] = step.kind === 'merge' ? step.files : [];
    if (step.kind === 'none' || first === undefined) return 0;
    const { table, day } = first;
    const level = 1 + Math.max(...step.files.map((file) => file.level));
    const merged = await this.#write(rowsOf(folder, step.files), { table, day, level, addedAtMs: nowMs });
    const rows = step.files.reduce((sum, file) => sum + file.rows, 0);
    if (merged.rows !== rows)
      throw new NightporterError(
        'NP_INTERNAL',
        `${rows} rows of ${table} on ${day} became ${merged.rows} when merged.`,
      );
    await this.#change({ added: [merged], landed: [], replaced: step.files.map(({ name }) => name) });
    return step.files.length;
  }

  /** Removes files that were replaced so long ago that nobody reads them any more. Returns their names. */
  async removeReplaced(keepMs: number): Promise<readonly string[]> {
    const { folder, store } = this.#ports;
    const names = await store.replacedFor(keepMs);
    if (names.length === 0) return names;
    // The file first: a name that is forgotten before its file is gone would make that a file of nobody until the next turn.
    await folder.remove(names);
    await store.forget(names);
    return names;
  }

  /** Publishes again where somebody else has: a worker whose turn is over, and which slept in between. */
  async keepPublished(): Promise<void> {
    if ((await this.#ports.folder.versionOf(MANIFEST)) !== this.#published) await this.publish();
  }

  async publish(): Promise<void> {
    const { folder } = this.#ports;
    const files = [...this.#live.values()];
    const manifest = encodeManifest({ warehouse: this.#warehouse, revision: this.#revision, files });
    this.#published = await folder.write(MANIFEST, manifest);
  }

  async #write(
    rows: Iterable<Row> | AsyncIterable<Row>,
    place: { table: TableName; day: string; level: number; addedAtMs: number },
  ): Promise<LiveFile> {
    const { folder, newId } = this.#ports;
    const { table, day } = place;
    const encoded = await encodeParquet(table, rows);
    const name = fileNameOf({ table, day, epoch: this.#turn.epoch, id: newId() });
    await folder.write(name, encoded.content);
    const { content } = encoded;
    return { name, ...place, rows: encoded.rows, bytes: content.byteLength, sha256: sha256Of(content) };
  }

  async #change(change: Change): Promise<void> {
    await this.#ports.store.commit(this.#turn, change);
    this.#revision += 1;
    for (const name of change.replaced) this.#live.delete(name);
    for (const file of change.added) this.#live.set(file.name, file);
    await this.publish();
  }

  /**
   * Listed before it is asked what counts: what an older turn has written and is not on record by then will never be. This turn may be over by now
   * without knowing it; what a newer one has written is not its to judge.
   */
  async #removeLeft(): Promise<readonly string[]> {
    const { folder, store } = this.#ports;
    const found = await folder.list();
    const counted = await store.names();
    const left = found.filter((name) => wasLeftBefore(this.#turn.epoch, name) && !counted.has(name));
    await folder.remove(left);
    return left;
  }
}

async function* rowsOf(folder: WarehouseFolder, files: readonly LiveFile[]): AsyncGenerator<Row> {
  for (const file of files) yield* await readFileOf(folder, file);
}

async function assertOneWarehouse(
  folder: WarehouseFolder,
  { live, warehouse }: { live: readonly LiveFile[]; warehouse: string },
): Promise<void> {
  const published = await readManifest(folder);
  if (published === null && live.length === 0) return;
  if (published?.warehouse === warehouse) return;
  const whose = published === null ? 'has no manifest' : `is of warehouse ${published.warehouse}`;
  throw new NightporterError(
    'NP_WAREHOUSE_FAILED',
    `The folder ${whose}, and the database has ${live.length} files of warehouse ${warehouse}: WAREHOUSE_FOLDER and MONGODB_DB do not belong together.`,
  );
}
