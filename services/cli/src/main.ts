#!/usr/bin/env node
import { createInterface } from 'node:readline/promises';
import type { Io } from './cli.js';
import { runCli } from './run.js';

const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    stop.abort();
    // What has not ended by itself two seconds later is ended; a second signal ends it at once.
    setTimeout(() => process.exit(130), 2_000).unref();
  });
}

const terminal: Io = {
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  isInteractive: process.stdin.isTTY && process.stderr.isTTY,
  signal: stop.signal,
  async ask(question) {
    const lines = createInterface({ input: process.stdin, output: process.stderr });
    try {
      return await lines.question(question, { signal: stop.signal });
    } finally {
      lines.close();
    }
  },
};

process.exitCode = await runCli(process.argv.slice(2), terminal);
