import { NightporterError } from '@nightporter/protocol';
import { findOnPath } from './find-on-path.js';

/** Maven is asked for only when jars have to be fetched. */
export function findMaven(environment: NodeJS.ProcessEnv): string {
  const maven = findOnPath('mvn', environment);
  if (maven !== undefined) return maven;
  throw new NightporterError(
    'NP_EMBEDDED_TOOL_MISSING',
    "RocketMQ's jars have to be fetched once with Maven, but there is no mvn on the PATH. " +
      'Install it (Debian, Ubuntu: apt-get install maven; macOS: brew install maven), ' +
      'or set ROCKETMQ_ENDPOINTS to a RocketMQ proxy that runs already.',
  );
}
