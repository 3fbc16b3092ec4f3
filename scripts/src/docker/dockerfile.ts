import { DockerfileParser, type Instruction } from 'dockerfile-ast';

export type Step =
  | { readonly kind: 'folder'; readonly path: string }
  | { readonly kind: 'environment'; readonly values: Readonly<Record<string, string>> }
  | { readonly kind: 'run'; readonly command: string }
  | {
      readonly kind: 'copy';
      /** A stage, or null for the folder that the image is built from. */
      readonly from: string | null;
      readonly sources: readonly string[];
      readonly target: string;
      readonly owner: string | null;
    };

export interface Stage {
  readonly name: string;
  /** A stage before it, or an image. */
  readonly base: string;
  readonly steps: readonly Step[];
  readonly user: string | null;
  readonly entrypoint: readonly string[] | null;
  readonly command: readonly string[] | null;
  readonly healthCheck: readonly string[] | null;
}

/** What the parser's instructions of one keyword have beside the others. */
interface FromParts {
  getImage(): string | null;
  getBuildStage(): string | null;
}
interface EnvParts {
  getProperties(): readonly { getName(): string; getValue(): string | null }[];
}
interface CopyParts {
  getArguments(): readonly { getValue(): string }[];
  getFlags(): readonly { getName(): string; getValue(): string | null }[];
}

type Draft = { -readonly [Key in keyof Stage]: Stage[Key] } & { steps: Step[] };

/** The stages of a Dockerfile in their order. Refuses what it cannot tell the meaning of, so that nothing is passed over. */
export function readDockerfile(text: string): readonly Stage[] {
  const values = new Map<string, string>();
  const stages: Draft[] = [];
  for (const instruction of DockerfileParser.parse(text).getInstructions()) {
    const keyword = instruction.getKeyword();
    if (keyword === 'ARG') {
      const [name = '', value = ''] = (instruction.getArgumentsContent() ?? '').split('=');
      values.set(name, value);
    } else if (keyword === 'FROM') {
      stages.push(newStage(instruction as unknown as FromParts, values));
    } else {
      const stage = stages.at(-1);
      if (stage === undefined) throw new Error(`${instruction.toString()} stands before the first FROM`);
      take(instruction, stage);
    }
  }
  return stages;
}

function newStage(from: FromParts, values: ReadonlyMap<string, string>): Draft {
  const image = from.getImage() ?? '';
  const base = image.replace(/\$\{(\w+)\}/g, (whole, name: string) => values.get(name) ?? whole);
  const name = from.getBuildStage();
  if (name === null) throw new Error(`the stage on ${base} has no name`);
  return { name, base, steps: [], user: null, entrypoint: null, command: null, healthCheck: null };
}

function take(instruction: Instruction, stage: Draft): void {
  const keyword = instruction.getKeyword();
  const text = instruction.getArgumentsContent() ?? '';
  switch (keyword) {
    case 'WORKDIR':
      stage.steps.push({ kind: 'folder', path: text });
      return;
    case 'ENV': {
      const pairs = (instruction as unknown as EnvParts)
        .getProperties()
        .map((pair) => [pair.getName(), pair.getValue() ?? ''] as const);
      stage.steps.push({ kind: 'environment', values: Object.fromEntries(pairs) });
      return;
    }
    case 'RUN':
      // What is mounted is a cache: without it the same comes about, later.
      stage.steps.push({ kind: 'run', command: text.replace(/^(?:--mount=\S+\s+)*/, '') });
      return;
    case 'COPY':
      stage.steps.push(copyOf(instruction as unknown as CopyParts));
      return;
    case 'USER':
      stage.user = text;
      return;
    case 'ENTRYPOINT':
      stage.entrypoint = execForm(text, keyword);
      return;
    case 'CMD':
      stage.command = execForm(text, keyword);
      return;
    case 'HEALTHCHECK':
      stage.healthCheck = execForm(text.slice(text.indexOf('CMD') + 'CMD'.length), keyword);
      return;
    default:
      throw new Error(`${keyword} is not known here`);
  }
}

function copyOf(copy: CopyParts): Step {
  const paths = copy.getArguments().map((argument) => argument.getValue());
  const flag = (name: string) =>
    copy
      .getFlags()
      .find((one) => one.getName() === name)
      ?.getValue() ?? null;
  return {
    kind: 'copy',
    from: flag('from'),
    sources: paths.slice(0, -1),
    target: paths.at(-1) ?? '',
    owner: flag('chown'),
  };
}

/** A shell between would keep signals to itself. */
function execForm(text: string, what: string): readonly string[] {
  const words: unknown = text.trim().startsWith('[') ? JSON.parse(text) : null;
  if (!Array.isArray(words)) throw new Error(`${what} is not in exec form: ${text}`);
  return words.map(String);
}
