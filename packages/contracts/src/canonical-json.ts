import type { JsonValue } from './envelope.js';

/** A container that is being written: its children stand behind it on the stack in reverse order. */
type Step = { readonly kind: 'text'; readonly text: string } | { readonly kind: 'value'; readonly value: JsonValue };

/**
 * The one text of a JSON value, after RFC 8785: keys sorted by UTF-16 code units, no white space, numbers and strings in the form of
 * JSON.stringify. Equal values give equal texts whatever the order of their keys.
 *
 * It is iterative, so that a body from elsewhere, however deep, cannot overflow the stack. A number that JSON cannot carry
 * (`1e400` in a foreign body is read as Infinity) is written as a word that no JSON text holds: a digest over it matches nothing.
 */
export function canonicalJson(value: JsonValue): string {
  const parts: string[] = [];
  const stack: Step[] = [{ kind: 'value', value }];
  for (let step = stack.pop(); step !== undefined; step = stack.pop()) {
    if (step.kind === 'text') parts.push(step.text);
    else write(step.value, parts, stack);
  }
  return parts.join('');
}

function write(value: JsonValue, parts: string[], stack: Step[]): void {
  if (typeof value === 'number' && !Number.isFinite(value)) parts.push(String(value));
  else if (value === null || typeof value !== 'object') parts.push(JSON.stringify(value));
  else if (isArray(value)) writeArray(value, parts, stack);
  else writeObject(value, parts, stack);
}

function writeArray(values: readonly JsonValue[], parts: string[], stack: Step[]): void {
  parts.push('[');
  stack.push({ kind: 'text', text: ']' });
  for (let index = values.length - 1; index >= 0; index -= 1) {
    stack.push({ kind: 'value', value: values[index] ?? null });
    if (index > 0) stack.push({ kind: 'text', text: ',' });
  }
}

function writeObject(object: Readonly<Record<string, JsonValue>>, parts: string[], stack: Step[]): void {
  parts.push('{');
  stack.push({ kind: 'text', text: '}' });
  // The default order of sort() is by UTF-16 code units, which is what RFC 8785 asks for.
  const keys = Object.keys(object).sort();
  for (let index = keys.length - 1; index >= 0; index -= 1) {
    const key = keys[index] ?? '';
    stack.push({ kind: 'value', value: object[key] ?? null });
    stack.push({ kind: 'text', text: `${index > 0 ? ',' : ''}${JSON.stringify(key)}:` });
  }
}

/** `Array.isArray` does not narrow readonly arrays. */
function isArray(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}
