import { describe, expect, it } from 'vitest';
import { fileNameOf, wasLeftBefore } from './file-names.js';

const EPOCH = 10;
const written = (epoch: number): string => fileNameOf({ table: 'events', day: '2026-11-30', epoch, id: 'a-1' });

describe('a turn, among files that are not on record,', () => {
  it.each([written(9), `${written(9)}.partial`, `${written(9)}.b-2.partial`])(
    'removes what an older one has left: %s',
    (name) => {
      expect(wasLeftBefore(EPOCH, name)).toBe(true);
    },
  );

  it.each([written(10), written(11), written(100), `${written(11)}.b-2.partial`])(
    'leaves alone what is of its own or of a newer one: %s',
    (name) => {
      expect(wasLeftBefore(EPOCH, name)).toBe(false);
    },
  );

  it.each(['manifest.json.partial', 'manifest.json.b-2.partial'])('removes a manifest that was cut off: %s', (name) => {
    expect(wasLeftBefore(EPOCH, name)).toBe(true);
  });

  it.each(['manifest.json', 'notes.txt', 'export.parquet', 'events/2-a.csv', 'old/manifest.json.partial'])(
    'leaves alone what is not of its kind: %s',
    (name) => {
      expect(wasLeftBefore(EPOCH, name)).toBe(false);
    },
  );
});
