import { parentPort } from 'node:worker_threads';
import { SABOTAGES, simulate, type SimulationResult } from '@nightporter/testing';

/** Seeds `from` to `to` − 1. */
export interface WorkerRequest {
  readonly from: number;
  readonly to: number;
  readonly sabotage: string | null;
}

export type HistoryReport = Pick<SimulationResult, 'seed' | 'violations' | 'events' | 'steps' | 'durationMs'>;

parentPort?.on('message', (request: WorkerRequest) => {
  void run(request);
});

/** A history that cannot be run at all ends this thread with its error. */
async function run({ from, to, sabotage: name }: WorkerRequest): Promise<void> {
  const sabotage = SABOTAGES.find((candidate) => candidate.name === name);
  const reports: HistoryReport[] = [];
  for (let seed = from; seed < to; seed += 1) {
    const result = await simulate({ seed, ...(sabotage === undefined ? {} : { sabotage }) });
    const { violations, events, steps, durationMs } = result;
    reports.push({ seed, violations, events, steps, durationMs });
  }
  parentPort?.postMessage(reports);
}
