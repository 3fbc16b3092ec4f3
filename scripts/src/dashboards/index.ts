import { CONSUMERS } from './consumers.js';
import { OVERVIEW } from './overview.js';
import type { Dashboard } from './panel.js';
import { RELAY } from './relay.js';
import { SLO } from './slo.js';

export { grafanaJson } from './grafana.js';
export type { Dashboard } from './panel.js';

/** The dashboards of docker/grafana as tables; the JSON that Grafana reads is made of them. */
export const DASHBOARDS: readonly Dashboard[] = [OVERVIEW, RELAY, CONSUMERS, SLO];
