import { needOf, timeline, type EventSummary, type GroupTimeline, type Step, type Timeline } from '@nightporter/ledger';
import { eventId } from '@nightporter/protocol';
import { Command } from 'commander';
import { EXIT, type Cli } from '../cli.js';
import { connected, withConnection, type ConnectionFlags } from '../connection.js';
import { answer, at, notes, section, table } from '../output.js';
import { sayGroup, sayRelay } from '../verdicts.js';

interface Flags extends ConnectionFlags {
  readonly json: boolean;
  readonly payload: boolean;
}

export function timelineCommand(cli: Cli): Command {
  return withConnection(
    new Command('timeline')
      .description('Tells everything about one event: what happened to it, where it is, and why it is not settled.')
      .argument('<eventId>', 'id of the event'),
  )
    .option('--payload', 'print what the event says, too', false)
    .option('--json', 'print one line of JSON', false)
    .addHelpText(
      'after',
      `
Exit codes: 0 it goes its way, 1 nothing has it, or it needs somebody, 2 wrong use, 3 it could not be found out.

Examples:
  nightporter timeline 01936f9e-7b1c-7cc1-a5c4-5a9c5f8f8d11
  nightporter timeline 01936f9e-7b1c-7cc1-a5c4-5a9c5f8f8d11 --json
`,
    )
    .action((id: string, flags: Flags) =>
      connected(flags, async ({ deployment }) => {
        const found = await timeline(deployment, eventId(id));
        const shown = found.kind === 'known' && !flags.payload ? { ...found, payload: null } : found;
        answer(cli, flags, shown, (value) => told(value, flags));
        if (needsSomebody(found)) cli.exitCode = EXIT.no;
      }),
    );
}

function needsSomebody(found: Timeline): boolean {
  if (found.kind === 'unknown') return true;
  const verdicts = found.groups.flatMap(({ verdict }) => (verdict === null ? [] : [verdict]));
  return [...verdicts, ...(found.kind === 'known' ? [found.relay] : [])].some((verdict) => needOf(verdict) === 'act');
}

function told(found: Timeline, flags: Flags): string {
  switch (found.kind) {
    case 'unknown':
      return `Event ${found.eventId} is nowhere. Looked in: ${found.lookedIn.join('; ')}.\n${notes(found.notKnown)}`;
    case 'only-in-groups':
      return [
        `Event ${found.eventId} is in no ledger, and these groups know it.\n`,
        section('Groups', groupTable(found.groups)),
        section('What happened', stepTable(found.steps)),
        notes(found.notKnown),
      ].join('');
    case 'known':
      return [
        eventLines(found.event),
        `The relay ${sayRelay(found.relay)}.\n${found.mend === null ? '' : `→ ${found.mend}\n`}`,
        section('Groups', found.groups.length === 0 ? 'none is registered for its topic\n' : groupTable(found.groups)),
        section('What happened', stepTable(found.steps)),
        flags.payload ? section('Payload', `${JSON.stringify(found.payload, null, 2)}\n`) : '',
        found.notKnown.length === 0 ? '' : '\n',
        notes(found.notKnown),
      ].join('');
  }
}

function eventLines(event: EventSummary): string {
  const { correlationId, tenantId } = event.headers;
  return [
    `${event.eventType} ${event.eventId}`,
    `  version ${event.version} of ${event.aggregate}, topic ${event.topic}`,
    `  ${event.status} in ${event.producer}.${event.place}`,
    ...(correlationId === undefined ? [] : [`  correlation ${correlationId}`]),
    ...(tenantId === undefined ? [] : [`  tenant ${tenantId}`]),
    '',
  ].join('\n');
}

function groupTable(groups: readonly GroupTimeline[]): string {
  return table(
    ['group', 'attempts', 'repeats', 'settled at', 'standing'],
    groups.map(({ attempts, group, isRegistered, mend, repeats, settledAt, verdict }) => [
      isRegistered ? group : `${group} (not registered)`,
      `${attempts}`,
      `${repeats}`,
      at(settledAt),
      mend === null ? sayGroup(verdict) : `${sayGroup(verdict)} → ${mend}`,
    ]),
  );
}

function stepTable(steps: readonly Step[]): string {
  return table(
    ['at', 'where', 'what'],
    steps.map((step) => [at(step.at), step.group ?? '-', `${step.kind}: ${step.text}`]),
  );
}
