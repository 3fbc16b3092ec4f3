import { brokerGroup, groupId, isNightporterError, type NightporterError } from '@nightporter/protocol';
import type { Examination } from './doctor.js';
import type { Finding } from './finding.js';

/**
 * The broker's checks that relay and workers refuse to start upon. Each rejects with a NightporterError where it refuses, whose message ends with
 * `Create it: ` or `Mend it: ` and the command; with NP_BROKER_UNAVAILABLE where it could not be found out.
 */
export interface BrokerProbe {
  topic(topic: string): Promise<unknown>;
  /** `group` as the broker calls it. */
  group(reader: { readonly group: string; readonly topic: string }): Promise<unknown>;
}

export interface BrokerExamination {
  readonly registered: Examination['registered'];
  /** Default: those of the registered groups. */
  readonly topics?: readonly string[] | undefined;
}

/** Has the broker asked for every topic, and for every group with each of its topics. */
export async function examineBroker(
  probe: BrokerProbe,
  { registered, topics }: BrokerExamination,
): Promise<readonly Finding[]> {
  const wanted = topics ?? [...new Set(registered.flatMap((entry) => entry.topics))].sort();
  const checks = [
    ...wanted.map((topic) => () => probe.topic(topic)),
    ...registered.flatMap(({ group, topics: read }) => {
      const name = brokerGroup(groupId(group));
      return read.map((topic) => () => probe.group({ group: name, topic }));
    }),
  ];
  const findings: Finding[] = [];
  for (const check of checks) {
    const refusal = await refusalOf(check);
    if (refusal === null) continue;
    const finding = findingOf(refusal);
    // What is wrong with a group itself is so for each of its topics.
    if (!findings.some(({ text }) => text === finding.text)) findings.push(finding);
    // Whoever does not answer would keep each of the others waiting as long.
    if (refusal.code === 'NP_BROKER_UNAVAILABLE') return findings;
  }
  return findings;
}

/** Where there is no broker to ask; `missing` says what would name it. */
export function brokerNotAsked(missing: string): Finding {
  const text = `Topics and groups at the broker were not looked at: ${missing}.`;
  return { severity: 'note', check: 'topic', text, mend: null };
}

async function refusalOf(check: () => Promise<unknown>): Promise<NightporterError | null> {
  try {
    await check();
    return null;
  } catch (error) {
    if (isNightporterError(error)) return error;
    throw error;
  }
}

function findingOf({ code, message }: NightporterError): Finding {
  if (code === 'NP_BROKER_UNAVAILABLE') {
    const text = `${message} What follows was not looked at.`;
    return { severity: 'error', check: 'topic', text, mend: 'See that the proxy runs and can be reached from here' };
  }
  const [text = message, mend] = message.split(/ (?:Create|Mend) it: /);
  return { severity: 'error', check: 'topic', text, mend: mend ?? `see ${code} in docs/errors.md` };
}
