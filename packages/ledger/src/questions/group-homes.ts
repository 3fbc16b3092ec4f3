/** Where a group keeps its data: in a database of the deployment at hand (`uri` null), or of another one. */
export interface GroupHome {
  readonly group: string;
  readonly database: string;
  readonly uri: string | null;
}

/** What {@link parseGroupHomes} takes, for whoever is told what is wrong. */
export const GROUP_HOMES_ACCEPTED =
  'group=database or group=database@mongodb://…, each group once, separated by commas';

/** A URI may have commas and an `@`: a comma only parts where a group follows, and the database ends at the first `@mongodb`. */
const BETWEEN = /,\s*(?=[%A-Za-z0-9_-]+(?:@\d+)?=)/;
const HOME = /^([%A-Za-z0-9_-]{1,100}(?:@[1-9][0-9]{0,3})?)=([A-Za-z0-9_-]{1,38})(?:@(mongodb(?:\+srv)?:\/\/\S+))?$/;

/** Null where the text is anything else. It may hold a password: whoever reports that must not repeat it. */
export function parseGroupHomes(text: string): readonly GroupHome[] | null {
  const homes = text.split(BETWEEN).map(homeOf);
  const found = homes.filter((home) => home !== null);
  const isRepeated = new Set(found.map(({ group }) => group)).size < found.length;
  return found.length === homes.length && !isRepeated ? found : null;
}

function homeOf(text: string): GroupHome | null {
  const [, group, database, uri = null] = HOME.exec(text.trim()) ?? [];
  return group === undefined || database === undefined ? null : { group, database, uri };
}
