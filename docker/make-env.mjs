#!/usr/bin/env node
// Writes docker/.env from docker/.env.example, with a random secret wherever the example has none.
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const at = (name) => fileURLToPath(new URL(name, import.meta.url));
const text = readFileSync(at('.env.example'), 'utf8').replace(
  /^([A-Z_]+)=$/gm,
  (_, name) => `${name}=${randomBytes(24).toString('hex')}`,
);
const file = process.argv[2] ?? at('.env');
try {
  // Never over one that is there: a database that was created with its passwords would no longer open.
  writeFileSync(file, text, { flag: 'wx', mode: 0o600 });
  process.stdout.write(`${file} is written\n`);
} catch (error) {
  if (error.code !== 'EEXIST') throw error;
  process.stdout.write(`${file} is there already, and stays as it is\n`);
}
