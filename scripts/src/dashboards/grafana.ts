import type { Dashboard, Panel } from './panel.js';

const COLUMNS = 24;
const STAT = { width: 6, height: 4 };
const GRAPH = { width: 12, height: 8 };

/** A dashboard as Grafana reads it from a file. */
export function grafanaJson({ id, title, panels }: Dashboard): string {
  const places = placesOf(panels);
  const dashboard = {
    uid: `nightporter-${id}`,
    title,
    tags: ['nightporter'],
    timezone: 'browser',
    schemaVersion: 39,
    refresh: '10s',
    time: { from: 'now-1h', to: 'now' },
    panels: panels.map((panel, index) => ({
      id: index + 1,
      type: panel.kind,
      title: panel.title,
      description: panel.description,
      datasource: { type: 'prometheus', uid: 'prometheus' },
      gridPos: places[index],
      fieldConfig: { defaults: { unit: panel.unit }, overrides: [] },
      targets: panel.queries.map(({ expression, legend }, order) => ({
        refId: String.fromCharCode('A'.charCodeAt(0) + order),
        expr: expression,
        ...(legend === '' ? {} : { legendFormat: legend }),
      })),
    })),
  };
  return `${JSON.stringify(dashboard, null, 2)}\n`;
}

interface Place {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

/** From left to right; a panel that does not fit, or is of another height, begins a new line. */
function placesOf(panels: readonly Panel[]): readonly Place[] {
  const places: Place[] = [];
  let line = { x: 0, y: 0, height: 0 };
  for (const { kind } of panels) {
    const { width, height } = kind === 'stat' ? STAT : GRAPH;
    const isNewLine = line.x + width > COLUMNS || (line.x > 0 && line.height !== height);
    if (isNewLine) line = { x: 0, y: line.y + line.height, height };
    places.push({ x: line.x, y: line.y, w: width, h: height });
    line = { x: line.x + width, y: line.y, height };
  }
  return places;
}
