import { runCli } from '@nightporter/cli';
import type { MongoClient } from 'mongodb';
import { spawn } from 'node:child_process';
import { runInNewContext } from 'node:vm';
import { builtFile, Program } from '../../e2e/programs.js';
import { IS_FULL } from './size.js';

/** What a command ended with, and the JSON that it printed. */
export interface Answer {
  readonly exit: number;
  readonly json: unknown;
}

/** Somebody at a terminal, with the settings of the deployment in the environment of every command. */
export interface Operator {
  /** Runs a command with `--json`. At full size as a process of its own, as a person would; else in this one, which is quicker. */
  run(args: readonly string[]): Promise<Answer>;
  /** The same as a process in any case, with these flags for Node itself. Rejects where what it prints is no JSON. */
  runProcess(args: readonly string[], execArgv?: readonly string[]): Promise<Answer & { readonly stderr: string }>;
  /** Does what a finding says: a command of nightporter, or what is to be said in mongosh. `<you>` and `<why>` are filled in. */
  mend(text: string): Promise<void>;
}

interface OperatorOptions {
  readonly client: MongoClient;
  /** Flags that name the deployment. */
  readonly where: readonly string[];
}

export function createOperator({ client, where }: OperatorOptions): Operator {
  const runProcess: Operator['runProcess'] = async (args, execArgv = []) => {
    const file = builtFile('services/cli/dist/main.js');
    const child = spawn(process.execPath, [...execArgv, file, ...args, ...where, '--json'], {
      env: { PATH: process.env['PATH'] },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const { exit, stderr, stdout } = await new Program(child).ended;
    if (typeof exit !== 'number' || exit > 1) throw new Error(`${args.join(' ')} ended with ${exit}: ${stderr}`);
    return { exit, json: JSON.parse(stdout) as unknown, stderr };
  };
  const run: Operator['run'] = IS_FULL ? runProcess : (args) => runHere([...args, ...where, '--json']);
  return {
    run,
    runProcess,
    async mend(text) {
      const command = /nightporter (.*)$/.exec(text)?.[1];
      if (text.includes('db.getSiblingDB')) await inMongosh(client, text);
      if (command === undefined) return;
      const args = command.replace('<you>', 'proof').replace('<why>', 'seeded').split(' ');
      const { exit } = await run(args.map((word) => (word.startsWith('"') ? (JSON.parse(word) as string) : word)));
      if (exit !== 0) throw new Error(`nightporter ${command} ended with ${exit}`);
    },
  };
}

async function runHere(args: readonly string[]): Promise<Answer> {
  let [out, err] = ['', ''];
  const exit = await runCli(args, {
    out: (text) => (out += text),
    err: (text) => (err += text),
    isInteractive: false,
    signal: new AbortController().signal,
    ask: () => Promise.reject(new Error('nobody is there to be asked')),
  });
  if (exit > 1) throw new Error(`${args.join(' ')} ended with ${exit}: ${err}`);
  return { exit, json: JSON.parse(out) as unknown };
}

/** The driver's collections understand what is said to those of the shell. */
async function inMongosh(client: MongoClient, text: string): Promise<void> {
  const statement = /db\.getSiblingDB\(.*\)(?= in mongosh)/.exec(text)?.[0];
  if (statement === undefined) throw new Error(`no statement is in "${text}"`);
  const getSiblingDB = (name: string): unknown =>
    new Proxy({}, { get: (_, collection) => client.db(name).collection(String(collection)) });
  await (runInNewContext(statement, { db: { getSiblingDB } }) as Promise<unknown>);
}
