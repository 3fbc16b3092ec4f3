import { readFileSync, readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { breakingChanges, describeBreakingChange } from './compatibility.js';
import { ordersCatalogue } from './orders-catalogue.js';
import { parseReleased } from './released.js';

const folder = new URL('../released/', import.meta.url);
const files = readdirSync(folder).filter((name) => name.endsWith('.json'));

describe('the orders catalogue', () => {
  it('has a release to be compared with', () => {
    expect(files.length).toBeGreaterThan(0);
  });

  it.each(files)('keeps every promise of the release in released/%s', (file) => {
    const released = parseReleased(readFileSync(new URL(file, folder), 'utf8'), `released/${file}`);
    expect(`${released.release}.json`).toBe(file);
    expect(breakingChanges(released, ordersCatalogue).map(describeBreakingChange)).toEqual([]);
  });
});
