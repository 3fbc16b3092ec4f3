import { expect, it } from 'vitest';
import { runCli } from './run.js';

it.each([
  ['points', 'a group without a database'],
  ['points=points@mongodb://reader:hunter2@a:27017,b /', 'an address that is none'],
  ['points=a,points=b', 'a group that is named twice'],
])('--group-db %s is refused with what is accepted, and without what was given (%s)', async (homes) => {
  const told: string[] = [];
  const tell = (text: string): void => void told.push(text);
  const signal = new AbortController().signal;
  const io = { out: tell, err: tell, isInteractive: false, signal, ask: () => Promise.resolve('') };
  const args = ['status', '--mongodb-uri', 'mongodb://127.0.0.1:1/', '--group-db', homes];
  expect(await runCli(args, io)).toBe(2);
  expect(told.join('')).toContain('accepted: group=database or group=database@mongodb://');
  expect(told.join('')).not.toContain(homes);
  expect(told.join('')).not.toContain('hunter2');
});
