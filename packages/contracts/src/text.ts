/** With the `u` flag a surrogate pair is one code point, so that this finds exactly the lone ones. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/** C0 and C1 control characters and DEL; RocketMQ refuses them in keys, tags and properties. */
const CONTROL_CHARACTER = /\p{Cc}/u;

/** A lone half of a surrogate pair has no UTF-8 form: it would arrive as U+FFFD. */
export function hasLoneSurrogate(text: string): boolean {
  return LONE_SURROGATE.test(text);
}

export function hasControlCharacter(text: string): boolean {
  return CONTROL_CHARACTER.test(text);
}

export function utf8Bytes(text: string): number {
  return Buffer.byteLength(text, 'utf8');
}

/** A value as an error message shows it: quoted, with escapes, and shortened in the middle of nowhere. */
export function shown(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value !== 'string') return kindOf(value);
  const quoted = JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
  return value.length > 80 ? `${quoted} (${value.length} characters)` : quoted;
}

/** What a value is, in words for an error message. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (value === undefined) return 'undefined';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? `an object of class ${className(value)}` : `a ${typeof value}`;
}

function className(value: object): string {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (typeof prototype !== 'object' || prototype === null) return 'Object';
  const maker: unknown = Object.getOwnPropertyDescriptor(prototype, 'constructor')?.value;
  return typeof maker === 'function' && maker.name !== '' ? maker.name : 'without a name';
}
