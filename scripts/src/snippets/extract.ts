/**
 * The TypeScript blocks of a Markdown page, completed to whole modules. A block often shows less than a compiler needs; a comment right
 * above it, which readers of the rendered page do not see, says what belongs around it:
 *
 *   <!-- snippet:             TypeScript that stands before the block; a line with nothing but … marks the place of the block, if
 *   declare const x: X;       something stands behind it too
 *   -->
 *   <!-- snippet continues --> the block follows the blocks above it on its page
 *   <!-- snippet unchecked: why --> the block is not checked
 */

export interface Line {
  readonly text: string;
  /** Of the page, from 1. */
  readonly number: number;
}

export type Snippet =
  | { readonly kind: 'module'; readonly line: number; readonly lines: readonly Line[] }
  | { readonly kind: 'unchecked'; readonly line: number; readonly reason: string }
  | { readonly kind: 'malformed'; readonly line: number; readonly problem: string };

const FENCE = /^\s*```(ts|typescript|mts|tsx)\b/;
const FENCE_END = /^\s*```\s*$/;
const PLACE = '…';

/** Every block of the page, in order. */
export function extractSnippets(markdown: string): readonly Snippet[] {
  const page = markdown.split('\n').map((text, index): Line => ({ text, number: index + 1 }));
  const snippets: Snippet[] = [];
  let above: readonly Line[] = [];
  for (let index = 0; index < page.length; index += 1) {
    const first = page[index];
    if (first === undefined || !FENCE.test(first.text)) continue;
    const length = page.slice(index + 1).findIndex(({ text }) => FENCE_END.test(text));
    if (length < 0) return [...snippets, { kind: 'malformed', line: first.number, problem: 'the block has no end' }];
    const block = page.slice(index + 1, index + 1 + length);
    const snippet = complete({ block, comment: commentAbove(page.slice(0, index)), above, line: first.number });
    if (snippet.kind === 'module') above = snippet.lines;
    snippets.push(snippet);
    index += length + 1;
  }
  return snippets;
}

interface Block {
  readonly block: readonly Line[];
  readonly comment: readonly Line[];
  readonly above: readonly Line[];
  readonly line: number;
}

function complete({ block, comment, above, line }: Block): Snippet {
  const told = /^<!-- snippet(.*)$/.exec(comment[0]?.text.trim() ?? '')?.[1]?.trim();
  if (told === undefined) return { kind: 'module', line, lines: block };
  if (told === 'continues -->') return { kind: 'module', line, lines: [...above, ...block] };
  const reason = /^unchecked:(.*)-->$/.exec(told)?.[1]?.trim();
  if (reason !== undefined) {
    return reason === ''
      ? { kind: 'malformed', line, problem: 'it is unchecked without a reason' }
      : { kind: 'unchecked', line, reason };
  }
  if (told !== ':') return { kind: 'malformed', line, problem: `"snippet ${told}" is no word for a snippet` };
  const around = comment.slice(1, -1);
  const at = around.findIndex(({ text }) => text.trim() === PLACE);
  if (at < 0) return { kind: 'module', line, lines: [...around, ...block] };
  return { kind: 'module', line, lines: [...around.slice(0, at), ...block, ...around.slice(at + 1)] };
}

/** The comment that ends right above, with at most empty lines between; none: empty. */
function commentAbove(before: readonly Line[]): readonly Line[] {
  const end = before.findLastIndex(({ text }) => text.trim() !== '');
  if (before[end]?.text.trim().endsWith('-->') !== true) return [];
  const start = before.slice(0, end + 1).findLastIndex(({ text }) => text.trim().startsWith('<!--'));
  return start < 0 ? [] : before.slice(start, end + 1);
}
