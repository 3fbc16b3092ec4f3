import type { Setting, SettingTable } from './settings.js';

export interface ServiceText {
  readonly name: string;
  readonly description: string;
}

/** What `--help` prints. */
export function helpText(service: ServiceText, table: SettingTable): string {
  const settings = Object.values(table).map((definition) => {
    const facts = [definition.kind.accepts, unitOf(definition), defaultOf(definition)].filter((fact) => fact !== '');
    return `  ${definition.name}\n      ${definition.description}\n      ${facts.join('; ')}`;
  });
  return [
    `${service.name}: ${service.description}`,
    '',
    'Settings (environment variables; an empty one counts as absent):',
    '',
    ...settings,
    '',
    'Signals: SIGTERM or SIGINT ends the process once its work in hand is done; a second one ends it at once.',
    '',
  ].join('\n');
}

/** One service's section of docs/configuration.md. */
export function configurationSection(service: ServiceText, table: SettingTable): string {
  const rows = Object.values(table).map((definition) => {
    const cells = [
      `\`${definition.name}\``,
      `${definition.description}${secrecyOf(definition)}`,
      definition.kind.accepts,
      definition.unit ?? '',
      definition.default === undefined ? '**required**' : definition.default === '' ? '' : `\`${definition.default}\``,
    ];
    return `| ${cells.map(escapeCell).join(' | ')} |`;
  });
  return [
    `## ${service.name}`,
    '',
    service.description,
    '',
    '| variable | meaning | accepted | unit | default |',
    '| --- | --- | --- | --- | --- |',
    ...rows,
    '',
  ].join('\n');
}

function escapeCell(cell: string): string {
  return cell.replaceAll('|', '\\|');
}

function secrecyOf({ secret }: Setting<unknown>): string {
  if (secret === undefined) return '';
  return secret === 'whole' ? ' Never logged.' : ' Its credentials are never logged.';
}

function unitOf(definition: Setting<unknown>): string {
  return definition.unit === undefined ? '' : `in ${definition.unit}`;
}

function defaultOf(definition: Setting<unknown>): string {
  if (definition.default === undefined) return 'required';
  return definition.default === '' ? 'optional' : `default ${definition.default}`;
}
