/**
 * `npm run catalogue -- check` compares the event catalogue with every release that was recorded; `npm run catalogue -- record 1.2.0`
 * records the catalogue as the promise of a release.
 */
import {
  breakingChanges,
  describeBreakingChange,
  ordersCatalogue,
  parseReleased,
  releasedCatalogue,
} from '@nightporter/contracts';
import { Command } from 'commander';
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../../packages/contracts/released/', import.meta.url));

const program = new Command('catalogue').description('Compares the event catalogue with its releases, or records one.');
program.command('check').description('Fails on a breaking change, and names it.').action(check);
program
  .command('record')
  .argument('<release>', 'name of the release, such as 1.2.0')
  .description('Writes packages/contracts/released/<release>.json; refused where an earlier release would be broken.')
  .action(record);
program.parse();

function check(): void {
  const broken = allBreakingChanges();
  for (const line of broken) console.error(line);
  console.log(JSON.stringify({ releases: releaseFiles().length, breakingChanges: broken.length }));
  if (broken.length > 0) process.exitCode = 1;
}

function record(release: string): void {
  if (!/^[0-9A-Za-z][0-9A-Za-z.-]{0,99}$/.test(release)) {
    const accepted = '1 to 100 letters, digits, dots and hyphens, a letter or digit first';
    program.error(`The release ${JSON.stringify(release)} is no name; accepted: ${accepted}.`);
  }
  const broken = allBreakingChanges();
  if (broken.length > 0) {
    for (const line of broken) console.error(line);
    console.error('Nothing was recorded: give the changed events a new version with an upcaster.');
    process.exitCode = 1;
    return;
  }
  const file = `${folder}${release}.json`;
  if (existsSync(file)) program.error(`${release} is recorded already; a promise that was made is not rewritten.`);
  writeFileSync(file, `${JSON.stringify(releasedCatalogue(release, ordersCatalogue), null, 2)}\n`);
  console.log(file);
}

function allBreakingChanges(): readonly string[] {
  return releaseFiles().flatMap((name) =>
    breakingChanges(parseReleased(readFileSync(`${folder}${name}`, 'utf8'), name), ordersCatalogue).map(
      describeBreakingChange,
    ),
  );
}

function releaseFiles(): readonly string[] {
  return readdirSync(folder).filter((name) => name.endsWith('.json'));
}
