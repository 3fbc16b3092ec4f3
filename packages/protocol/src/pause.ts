/** What operators have paused. */
export interface Pause {
  /** Everything, whatever the topic. */
  readonly all: boolean;
  readonly topics: readonly string[];
}

export const NOTHING_PAUSED: Pause = { all: false, topics: [] };

export function isPaused(pause: Pause, topic: string): boolean {
  return pause.all || pause.topics.includes(topic);
}

export function samePause(left: Pause, right: Pause): boolean {
  const sorted = (pause: Pause): string => JSON.stringify([pause.all, [...pause.topics].sort()]);
  return sorted(left) === sorted(right);
}
