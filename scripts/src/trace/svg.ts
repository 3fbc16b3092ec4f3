import { eventTypeOf, outcomeOf, type TraceRow } from './rows.js';

const WIDTH = 1_200;
const MARGIN = 16;
const LABELS = 470;
const ROW = 19;
const BAR = 11;
const HEAD = 78;
const INDENT = 11;
const TICKS = 6;
/** A moment is still to be seen. */
const BAR_MIN = 2;

/** Colours of services in the order in which they first appear, in light and in dark; both stand out against their ground. */
const COLOURS = [
  ['#57606a', '#9198a1'],
  ['#0969da', '#58a6ff'],
  ['#bf3989', '#f778ba'],
  ['#1a7f37', '#3fb950'],
  ['#9a6700', '#d29922'],
  ['#8250df', '#bc8cff'],
  ['#cf222e', '#ff7b72'],
  ['#0a7d8c', '#39c5cf'],
  ['#d4622a', '#f0883e'],
] as const;

/** A trace as a picture: the same spans give the same picture, whatever order they came in. */
export function traceSvg(rows: readonly TraceRow[], title: string): string {
  const beginMs = Math.min(...rows.map(({ span }) => span.startMs));
  const totalMs = Math.max(...rows.map(({ span }) => span.endMs)) - beginMs;
  const services = [...new Set(rows.map(({ span }) => span.service))];
  const height = HEAD + rows.length * ROW + MARGIN;
  const scale = (WIDTH - LABELS - 2 * MARGIN) / Math.max(totalMs, 1);
  const left = (ms: number): number => LABELS + MARGIN + (ms - beginMs) * scale;
  const bars = rows.map(({ span, depth }, index) => {
    const y = HEAD + index * ROW;
    const colour = `s${services.indexOf(span.service) % COLOURS.length}`;
    const width = Math.max(BAR_MIN, (span.endMs - span.startMs) * scale);
    const facts = [eventTypeOf(span), outcomeOf(span)].filter((fact) => fact !== '').join(', ');
    const about = `${span.service}: ${span.name}${facts === '' ? '' : ` (${facts})`}, ${duration(span.endMs - span.startMs)}`;
    const label = facts === '' ? '' : ` <tspan class="quiet">${escaped(facts)}</tspan>`;
    return [
      `<g><title>${escaped(about)}</title>`,
      `<text x="${MARGIN + depth * INDENT}" y="${y + BAR}"><tspan class="${colour}">■</tspan> ${escaped(span.name)}${label}</text>`,
      `<rect class="${colour}" x="${fixed(left(span.startMs))}" y="${y + 2}" width="${fixed(width)}" height="${BAR}" rx="1.5"/>`,
      '</g>',
    ].join('');
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="title">`,
    `<title id="title">${escaped(title)}</title>`,
    `<style>${style()}</style>`,
    `<rect class="ground" width="${WIDTH}" height="${height}"/>`,
    `<text class="head" x="${MARGIN}" y="24">${escaped(title)}</text>`,
    legend(services),
    ticks({ totalMs, height, left: (ms) => left(beginMs + ms) }),
    ...bars,
    '</svg>',
    '',
  ].join('\n');
}

function legend(services: readonly string[]): string {
  const parts = services.map(
    (service, index) => `<tspan class="s${index % COLOURS.length}">■</tspan> ${escaped(service)}`,
  );
  return `<text x="${MARGIN}" y="44">${parts.join('  ')}</text>`;
}

function ticks({ totalMs, height, left }: { totalMs: number; height: number; left: (ms: number) => number }): string {
  const stepMs = niceStep(totalMs / TICKS);
  const lines: string[] = [];
  for (let ms = 0; ms <= totalMs; ms += stepMs) {
    const x = fixed(left(ms));
    lines.push(`<path class="tick" d="M${x} ${HEAD - 6}V${height - MARGIN}"/>`);
    lines.push(`<text class="quiet" x="${x}" y="${HEAD - 9}" text-anchor="middle">${duration(ms)}</text>`);
  }
  return lines.join('\n');
}

/** 1, 2 or 5 with noughts. */
function niceStep(ms: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(ms, 0.001)));
  return ([1, 2, 5, 10].find((factor) => factor * power >= ms) ?? 10) * power;
}

function duration(ms: number): string {
  if (ms >= 1_000) return `${(ms / 1_000).toFixed(2)} s`;
  return ms >= 10 || ms === 0 ? `${Math.round(ms)} ms` : `${ms.toFixed(1)} ms`;
}

function style(): string {
  const rules = (mode: 0 | 1) => COLOURS.map((colours, index) => `.s${index}{fill:${colours[mode]}}`).join('');
  return [
    'text{font:11px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#1f2328;white-space:pre}',
    '.head{font-weight:600;font-size:13px}.quiet{fill:#59636e}.ground{fill:#fff}.tick{stroke:#d1d9e0;stroke-width:1}',
    rules(0),
    '@media (prefers-color-scheme:dark){text{fill:#f0f6fc}.quiet{fill:#9198a1}.ground{fill:#0d1117}.tick{stroke:#3d444d}',
    `${rules(1)}}`,
  ].join('');
}

function fixed(value: number): string {
  return value.toFixed(1);
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
