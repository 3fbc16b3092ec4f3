import { brokerGroup, groupId } from '@nightporter/protocol';
import { groupCommand, topicCommand } from '@nightporter/rocketmq';
import { loadConfig } from '@nightporter/runtime';
import type { Compose } from './compose.js';
import { SERVICES } from './services.js';

export interface BrokerNeeds {
  readonly topics: readonly string[];
  /** As the broker calls them. */
  readonly groups: readonly string[];
}

/** What the services ask of the broker when they are configured like this: their preflight looks for exactly that. */
export function brokerNeeds({ services }: Pick<Compose, 'services'>): BrokerNeeds {
  const topics = new Set<string>();
  const groups = new Set<string>();
  for (const { name, config: table } of SERVICES) {
    const config: Readonly<Record<string, unknown>> = loadConfig(table, services[name]?.environment ?? {});
    for (const topic of topicsOf(config)) topics.add(topic);
    if (typeof config['group'] === 'string') groups.add(brokerGroup(groupId(config['group'])));
  }
  return { topics: [...topics].toSorted(), groups: [...groups].toSorted() };
}

/** The relay has a list of them; a worker a setting for each subscription. */
function topicsOf(config: Readonly<Record<string, unknown>>): readonly string[] {
  if (Array.isArray(config['topics'])) return config['topics'].map(String);
  return Object.entries(config).flatMap(([key, value]) => (key.startsWith('topic ') ? [String(value)] : []));
}

/** The shell script that creates what is needed, with the commands that a failed preflight prints. */
export function setUpScript({ topics, groups }: BrokerNeeds): string {
  const commands = [
    ...topics.map((topic) => topicCommand({ topic })),
    ...groups.map((group) => groupCommand({ group })),
  ];
  return `${INTRODUCTION}\n${commands.join('\n')}\n`;
}

const INTRODUCTION = `#!/bin/sh
# Creates the topics and groups that the services of docker/compose.yaml ask for, or brings them into the form that their preflight accepts.
# Written by \`npx vitest run --project unit scripts/src/docker -u\` from the services' settings.
set -eu

# The tool exits with 0 whatever happens, and tells success in words only. A broker that has just started may not be registered yet.
mqadmin() {
  tries=30
  while [ "$tries" -gt 0 ]; do
    answer=$(sh "$ROCKETMQ_HOME/bin/mqadmin" "$@" 2>&1) || true
    case "$answer" in *success*)
      echo "done: mqadmin $*"
      return 0
      ;;
    esac
    tries=$((tries - 1))
    sleep 2
  done
  echo "not done: mqadmin $*: $answer" >&2
  exit 1
}
`;
