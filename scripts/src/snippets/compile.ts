import { join } from 'node:path';
import ts from 'typescript';
import type { Line } from './extract.js';

/** One module, made from a page. */
export interface PageModule {
  readonly page: string;
  readonly lines: readonly Line[];
}

/**
 * What the compiler has against the modules, each as `page:line: message`. They are compiled with the options of the repository,
 * against the sources of its packages, as if they stood in `test/`, which depends on all of them.
 */
export function compileModules(root: string, modules: readonly PageModule[]): readonly string[] {
  const files = new Map(modules.map((module, index) => [join(root, 'test', `snippet-${index}.ts`), module]));
  const options = optionsOf(root);
  const host = hostOf(options, (file) => {
    const module = files.get(file);
    // What has no import or export would be a script, and share its names with the others.
    return module && `${module.lines.map(({ text }) => text).join('\n')}\nexport {};\n`;
  });
  const program = ts.createProgram({ rootNames: [...files.keys()], options, host });
  return [...files].flatMap(([file, module]) => {
    const source = program.getSourceFile(file);
    return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)].map((diagnostic) =>
      told(diagnostic, module),
    );
  });
}

function optionsOf(root: string): ts.CompilerOptions {
  const read = ts.readConfigFile(join(root, 'tsconfig.base.json'), (path) => ts.sys.readFile(path));
  const { compilerOptions } = read.config as { compilerOptions: Record<string, unknown> };
  const { options, errors } = ts.convertCompilerOptionsFromJson(compilerOptions, root);
  const [error] = [...(read.error === undefined ? [] : [read.error]), ...errors];
  if (error !== undefined) throw new Error(ts.flattenDiagnosticMessageText(error.messageText, '\n'));
  return {
    ...options,
    composite: false,
    declaration: false,
    noEmit: true,
    customConditions: ['@nightporter/source'],
    typeRoots: [join(root, 'node_modules', '@types')],
  };
}

function hostOf(options: ts.CompilerOptions, textOf: (file: string) => string | undefined): ts.CompilerHost {
  const host = ts.createCompilerHost(options);
  return {
    ...host,
    fileExists: (file) => textOf(file) !== undefined || host.fileExists(file),
    readFile: (file) => textOf(file) ?? host.readFile(file),
    getSourceFile: (file, language, onError, fresh) => {
      const text = textOf(file);
      return text === undefined
        ? host.getSourceFile(file, language, onError, fresh)
        : ts.createSourceFile(file, text, language);
    },
  };
}

function told({ file, start, messageText }: ts.Diagnostic, { page, lines }: PageModule): string {
  const at = file === undefined || start === undefined ? 0 : file.getLineAndCharacterOfPosition(start).line;
  const line = lines[at]?.number ?? lines.at(-1)?.number ?? 0;
  return `${page}:${line}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
}
