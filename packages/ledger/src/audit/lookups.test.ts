import { describe, expect, it } from 'vitest';
import { Rising, heightsOf } from './lookups.js';

describe('answers that rise', () => {
  const setup = (max?: number) => {
    const versions = new Map([
      ['a', 3],
      ['b', 5],
    ]);
    const asked: (readonly string[])[] = [];
    const rising = new Rising<number>({
      heightOf: (value) => value,
      load: (keys) => {
        asked.push(keys);
        const entries = keys.flatMap((key): [string, number][] => {
          const version = versions.get(key);
          return version === undefined ? [] : [[key, version]];
        });
        return Promise.resolve(new Map(entries));
      },
      ...(max === undefined ? {} : { max }),
    });
    const read = async (...wanted: readonly [string, number][]) =>
      Object.fromEntries(await rising.read(new Map(wanted)));
    return { versions, asked, read };
  };

  it('are read once while they are high enough', async () => {
    const { asked, read } = setup();
    expect(await read(['a', 1], ['b', 5])).toEqual({ a: 3, b: 5 });
    expect(await read(['a', 3])).toEqual({ a: 3 });
    expect(asked).toEqual([['a', 'b']]);
  });

  it('are read again where more is asked for, and where there was none', async () => {
    const { asked, read, versions } = setup();
    expect(await read(['a', 3], ['c', 1])).toEqual({ a: 3 });
    versions.set('a', 4).set('c', 1);
    expect(await read(['a', 4], ['c', 1])).toEqual({ a: 4, c: 1 });
    expect(asked).toEqual([
      ['a', 'c'],
      ['a', 'c'],
    ]);
  });

  it('are forgotten, the oldest first, where there are too many', async () => {
    const { asked, read } = setup(1);
    await read(['a', 1], ['b', 1]);
    await read(['b', 1]);
    await read(['a', 1]);
    expect(asked).toEqual([['a', 'b'], ['a']]);
  });
});

it('the height of a key is its highest version', () => {
  const heights = heightsOf([
    ['a', 2],
    ['b', 1],
    ['a', 5],
    ['a', 3],
  ]);
  expect(Object.fromEntries(heights)).toEqual({ a: 5, b: 1 });
});
