import type { ExpectedVersion } from '../orders.js';

export function entityTag(version: number): string {
  return `"${version}"`;
}

/** `If-Match` compares strongly (RFC 9110): a weak tag, or one that no order ever had, matches nothing. */
export function expectedVersionOf(ifMatch: string | undefined): ExpectedVersion {
  if (ifMatch === undefined || ifMatch === '*') return { kind: 'any' };
  const tags = ifMatch.match(/(W\/)?"[^"]*"/g) ?? [];
  return {
    kind: 'one-of',
    versions: tags.filter((tag) => /^"[1-9]\d{0,14}"$/.test(tag)).map((tag) => Number(tag.slice(1, -1))),
  };
}
