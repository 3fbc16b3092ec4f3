import { describe, expect, it } from 'vitest';
import { groupHomes } from './group-homes.js';

const read = (text: string) => groupHomes().schema.safeParse(text);

describe('GROUP_DBS', () => {
  it('names databases of groups, and other deployments, whose addresses may have commas', () => {
    const other = 'mongodb://reader:p%40ss@a:27017,b:27017/?replicaSet=rs1';
    expect(read(`points=points, mail@2=mail@${other},audit=audit@mongodb+srv://c/`).data).toEqual([
      { group: 'points', database: 'points', uri: null },
      { group: 'mail@2', database: 'mail', uri: other },
      { group: 'audit', database: 'audit', uri: 'mongodb+srv://c/' },
    ]);
    expect(read('').data).toEqual([]);
  });

  it.each(['points', '=points', 'points=', 'points=a b', 'points=a,points=b', 'points=points@http://a', 'a=b,c'])(
    'refuses %j',
    (text) => {
      expect(read(text).success).toBe(false);
    },
  );
});
