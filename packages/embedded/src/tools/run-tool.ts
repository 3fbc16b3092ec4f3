import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { NightporterError } from '@nightporter/protocol';
import { tailOfText } from './tail.js';

const OUTPUT_CHARACTERS_MAX = 64_000;

export interface ToolRun {
  command: string;
  arguments: string[];
  environment: NodeJS.ProcessEnv;
  limitMs: number;
  folder?: string;
  onLine?: (line: string) => void;
}

/**
 * Runs a command-line tool to its end and returns what it printed on both streams (the last 64,000 characters).
 * Throws NP_EMBEDDED_PREPARE_FAILED with the end of that when it fails or takes longer than `limitMs`.
 */
export async function runTool(run: ToolRun): Promise<string> {
  const child = spawn(run.command, run.arguments, {
    cwd: run.folder,
    env: run.environment,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const endWithUs = () => child.kill();
  process.once('exit', endWithUs);
  const limit = AbortSignal.timeout(run.limitMs);
  limit.addEventListener('abort', () => child.kill('SIGKILL'));
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      output = `${output}${line}\n`.slice(-OUTPUT_CHARACTERS_MAX);
      run.onLine?.(line);
    });
  }
  const end = await new Promise<string | undefined>((resolve) => {
    child.once('error', (error) => {
      resolve(`could not be run: ${error.message}`);
    });
    child.once('close', (code, signal) => {
      resolve(code === 0 ? undefined : `ended with ${signal ?? `exit code ${code ?? 'unknown'}`}`);
    });
  });
  process.removeListener('exit', endWithUs);
  if (end === undefined) return output;
  const why = limit.aborted ? `took longer than ${run.limitMs} ms` : end;
  throw new NightporterError(
    'NP_EMBEDDED_PREPARE_FAILED',
    `${run.command} ${why}; the end of its output:\n${tailOfText(output)}`,
  );
}
