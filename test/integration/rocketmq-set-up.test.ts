import { groupCommand, preflightGroup, preflightTopic, topicCommand } from '@nightporter/rocketmq';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, inject, it, onTestFinished } from 'vitest';
import { sharedStack, uniqueName } from '../support/stack.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const cache = process.env['NIGHTPORTER_CACHE'] ?? join(ROOT, '.cache', 'embedded');
const jars = existsSync(cache) ? readdirSync(cache).find((name) => name.startsWith('rocketmq-jars-')) : undefined;
const nameServer = inject('rocketmqNameServer');

/** RocketMQ's own tool, out of the jars that the broker runs from, where the image has it. */
function homeWithTools(): string {
  const home = mkdtempSync(join(tmpdir(), 'nightporter-mqadmin-'));
  onTestFinished(() => {
    rmSync(home, { recursive: true });
  });
  const classPath = join(cache, jars ?? '', '*');
  const java = `exec java -Duser.home="${home}" -XX:TieredStopAtLevel=1 -cp "${classPath}"`;
  mkdirSync(join(home, 'bin'));
  writeFileSync(join(home, 'bin', 'mqadmin'), `${java} org.apache.rocketmq.tools.command.MQAdminStartup "$@"\n`);
  return home;
}

/** docker/rocketmq/set-up.sh with these commands in the place of its own. */
function setUpWith(commands: readonly string[]): string {
  const script = readFileSync(join(ROOT, 'docker', 'rocketmq', 'set-up.sh'), 'utf8');
  return `${script.slice(0, script.indexOf('\nmqadmin updateTopic'))}\n${commands.join('\n')}\n`;
}

it.skipIf(nameServer === null || jars === undefined)(
  'What the set-up job of Compose creates with RocketMQ’s own tool is what the services’ preflight accepts',
  async () => {
    const { rocketmqEndpoints: endpoints } = sharedStack();
    const [topic, group] = [uniqueName('set-up'), uniqueName('set-up-group')];
    const run = spawnSync('sh', ['-c', setUpWith([topicCommand({ topic }), groupCommand({ group })])], {
      env: { ...process.env, ROCKETMQ_HOME: homeWithTools(), NAMESRV_ADDR: nameServer ?? '' },
      encoding: 'utf8',
      timeout: 120_000,
    });
    expect(run.stderr).toBe('');
    expect(run).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^done: mqadmin updateTopic .*\ndone: mqadmin updateSubGroup .*\n$/),
    });
    expect(await preflightTopic({ endpoints, topic })).toEqual({ topic, queueCount: 8 });
    expect(await preflightGroup({ endpoints, group, topic })).toEqual({ group, retryTimesMax: 10_000 });
  },
  150_000,
);
