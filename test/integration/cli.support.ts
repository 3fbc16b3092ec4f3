import { runCli } from '@nightporter/cli';
import { sharedStack } from '../support/stack.js';
import type { OperationsFixture } from './operations.support.js';

export interface CliRun {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs the command line in this process, on the fixture's databases; `answers` are what a person types. */
export async function cli(
  fixture: OperationsFixture,
  args: readonly string[],
  more: { answers?: string[]; signal?: AbortSignal } = {},
): Promise<CliRun> {
  const { consumer, group, producer, relayDatabase } = fixture;
  const where = [
    '--mongodb-uri',
    sharedStack().mongodbUri,
    '--producers',
    producer,
    '--relay-db',
    relayDatabase,
    '--group-db',
    `${group}=${consumer}`,
  ];
  return cliAlone([...args, ...where], more);
}

/** The same with nothing but these words. */
export async function cliAlone(
  args: readonly string[],
  more: { answers?: string[]; signal?: AbortSignal } = {},
): Promise<CliRun> {
  let out = '';
  let err = '';
  const code = await runCli(args, {
    out: (text) => (out += text),
    err: (text) => (err += text),
    isInteractive: more.answers !== undefined,
    signal: more.signal ?? new AbortController().signal,
    ask: (question) => {
      err += question;
      return Promise.resolve(more.answers?.shift() ?? '');
    },
  });
  return { code, out, err };
}
