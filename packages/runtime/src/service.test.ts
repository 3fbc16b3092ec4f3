import { describe, expect, it } from 'vitest';
import { commonSettings } from './common-settings.js';
import type { ProcessHost, StopSignal } from './process-host.js';
import { runService, type RunningService, type ServiceDefinition } from './service.js';

const config = commonSettings({ defaultPort: 3000 });

/** A process that can be sent signals and that records its exits. */
function fakeHost(options: { env?: Record<string, string>; arguments?: readonly string[] } = {}) {
  const printed: string[] = [];
  const log: string[] = [];
  const exits: number[] = [];
  let stop: (name: StopSignal) => void = () => undefined;
  let crash: (error: unknown) => void = () => undefined;
  const host: ProcessHost = {
    env: { SHUTDOWN_MS: '100', ...options.env },
    arguments: options.arguments ?? [],
    log: { write: (line) => log.push(line) },
    print: (line) => printed.push(line),
    printError: (line) => printed.push(line),
    exit: (code) => exits.push(code),
    onStopSignal: (heard) => (stop = heard),
    onUncaught: (heard) => (crash = heard),
  };
  return {
    host,
    printed,
    log,
    exits,
    kill: (name: StopSignal) => {
      stop(name);
    },
    crash: (error: unknown) => {
      crash(error);
    },
  };
}

const forever = (): Promise<never> => new Promise(() => undefined);

function service(start: ServiceDefinition<typeof config>['start']): ServiceDefinition<typeof config> {
  return { name: 'sample', description: 'A sample.', config, start };
}

/** Starts a service and resolves once it runs. */
async function running(parts: Partial<RunningService>, fake = fakeHost()) {
  let run: Promise<void> = Promise.resolve();
  await new Promise<void>((resolve) => {
    run = runService(
      service(() => {
        setImmediate(resolve);
        return Promise.resolve({ ended: parts.ended ?? forever(), stop: parts.stop ?? (() => Promise.resolve()) });
      }),
      fake.host,
    );
  });
  return { ...fake, run };
}

describe('a service process', () => {
  it('stops and exits 0 after SIGTERM', async () => {
    let stops = 0;
    const { run, kill, exits } = await running({ stop: () => Promise.resolve(void (stops += 1)) });
    expect(exits).toEqual([]);
    kill('SIGTERM');
    await run;
    expect([stops, exits]).toEqual([1, [0]]);
  });

  it('exits 1 with a log line when the work in hand outlasts SHUTDOWN_MS', async () => {
    const { run, kill, exits, log } = await running({ stop: forever });
    kill('SIGINT');
    await run;
    expect(exits).toEqual([1]);
    expect(log.join('')).toContain('did not end within SHUTDOWN_MS (100 ms)');
  });

  it('exits at once on a second signal', async () => {
    const { kill, exits } = await running({ stop: forever });
    kill('SIGTERM');
    expect(exits).toEqual([]);
    kill('SIGINT');
    expect(exits).toEqual([130]);
  });

  it('exits 1 with a log line when starting fails', async () => {
    const fake = fakeHost();
    await runService(
      service(() => Promise.reject(new Error('no topic'))),
      fake.host,
    );
    expect(fake.exits).toEqual([1]);
    expect(fake.log.join('')).toContain('no topic');
  });

  it('exits 0 when it is stopped while starting', async () => {
    const fake = fakeHost();
    const run = runService(
      service(
        ({ signal }) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => {
              reject(new Error('aborted'));
            });
          }),
      ),
      fake.host,
    );
    fake.kill('SIGTERM');
    await run;
    expect(fake.exits).toEqual([0]);
  });

  it.each([
    ['resolves', () => Promise.resolve(), 'ended without being asked to'],
    ['rejects', () => Promise.reject(new Error('lost the lease')), 'lost the lease'],
  ])('exits 1 when its work %s by itself', async (_name, ended, reason) => {
    const { run, exits, log } = await running({ ended: ended() });
    await run;
    expect(exits).toEqual([1]);
    expect(log.join('')).toContain(reason);
  });

  it('exits 1 with a log line when an exception was caught by nobody', async () => {
    const { run, crash, exits, log } = await running({});
    crash(new Error('broken invariant'));
    await run;
    expect(exits).toEqual([1]);
    expect(log.join('')).toContain('broken invariant');
  });

  it('prints its settings and exits 0 with --help, whatever the environment says', async () => {
    const fake = fakeHost({ arguments: ['--help'], env: { PORT: 'wrong' } });
    await runService(service(forever), fake.host);
    expect(fake.exits).toEqual([0]);
    expect(fake.printed.join('')).toContain('SHUTDOWN_MS');
  });

  it('refuses an unknown argument', async () => {
    const fake = fakeHost({ arguments: ['--port=1'] });
    await runService(service(forever), fake.host);
    expect(fake.exits).toEqual([1]);
    expect(fake.printed.join('')).toContain('"--port=1"');
  });

  it('exits 1 and names what is wrong when a setting is not usable', async () => {
    const fake = fakeHost({ env: { PORT: 'wrong', LOG_LEVEL: 'loud' } });
    await runService(service(forever), fake.host);
    expect(fake.exits).toEqual([1]);
    expect(fake.printed.join('')).toMatch(/PORT is "wrong"[\s\S]*LOG_LEVEL is "loud"/);
  });
});
