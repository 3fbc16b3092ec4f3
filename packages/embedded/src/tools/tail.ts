import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

const TAIL_BYTES = 4000;
const TAIL_LINES = 25;

/** The last lines of a text, indented for an error message. */
export function tailOfText(text: string): string {
  const lines = text.slice(-TAIL_BYTES).trimEnd().split('\n').slice(-TAIL_LINES);
  return lines.map((line) => `  ${line}`).join('\n');
}

/** The last lines of a file, or a word on why there are none. */
export function tailOfFile(file: string): string {
  try {
    const descriptor = openSync(file, 'r');
    try {
      const size = fstatSync(descriptor).size;
      const buffer = Buffer.alloc(Math.min(size, TAIL_BYTES));
      readSync(descriptor, buffer, 0, buffer.length, size - buffer.length);
      return buffer.length === 0 ? '  (empty)' : tailOfText(buffer.toString('utf8'));
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    return `  (unreadable: ${(error as Error).message})`;
  }
}
