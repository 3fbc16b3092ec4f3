import { InvalidArgumentError } from 'commander';
import type { Cli } from './cli.js';

/** Prints an answer: one line of JSON, or what people read. */
export function answer<Value>(
  { io }: Cli,
  { json }: { readonly json: boolean },
  value: Value,
  told: (value: Value) => string,
): void {
  io.out(json ? `${JSON.stringify(value)}\n` : told(value));
}

/** Columns as wide as what stands in them; the last one is left as long as it is. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return '';
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)))
      .join('  ')
      .trimEnd();
  return `${all.map(line).join('\n')}\n`;
}

/** A part of an answer under its title; nothing where there is nothing. */
export function section(title: string, text: string): string {
  return text === '' ? '' : `\n${title}\n${text}`;
}

export function notes(lines: readonly string[]): string {
  return lines.map((line) => `note: ${line}\n`).join('');
}

export function at(date: Date | null): string {
  return date === null ? '-' : date.toISOString();
}

/** For people: `850 ms`, `12 s`, `3 min`, `5 h`, `2 d`. */
export function duration(ms: number | null): string {
  if (ms === null) return '-';
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 120_000) return `${Math.round(ms / 1_000)} s`;
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min`;
  return ms < 172_800_000 ? `${Math.round(ms / 3_600_000)} h` : `${Math.round(ms / 86_400_000)} d`;
}

/** Says "3 things" or "1 thing". */
export function count(number: number, thing: string): string {
  return `${number} ${thing}${number === 1 ? '' : 's'}`;
}

export function time(text: string): Date {
  const date = new Date(text);
  if (!/^\d{4}-\d{2}-\d{2}/.test(text) || Number.isNaN(date.getTime()))
    throw new InvalidArgumentError('expected a time such as 2026-11-30T12:00:00Z');
  return date;
}

/** A parser of whole numbers. */
export function whole({ min, max }: { readonly min: number; readonly max: number }): (text: string) => number {
  return (text) => {
    const value = /^\d{1,12}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min && value <= max))
      throw new InvalidArgumentError(`expected a whole number from ${min} to ${max}`);
    return value;
  };
}
