import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { anchorsOf, pathFaults, referenceFaults, type Targets } from './references.ts';

/** Where people read references: code, its tests, and all pages. */
const READ = /^(?:packages\/[^/]+\/src|e2e|bench|scripts|docs|\.ci)\/|^[^/]+\.(?:md|json|ts)$/;
/** Pages that say where things are. */
const MAPS = ['AGENTS.md', 'docs/architecture.md'];
const TEXT = /(?:\.(?:ts|mjs|md|json|sh)|\.ci\/run)$/;
/** These two hold what is looked for. */
const LEFT_OUT = /^scripts\/docs\/references(?:\.test)?\.ts$/;

/** Everything in the repository that refers to something that nobody can open, as `file: what`. */
export async function projectReferenceFaults(root: string): Promise<readonly string[]> {
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
  });
  const files = listed
    .toString()
    .split('\0')
    .filter(
      (file) =>
        READ.test(file) && TEXT.test(file) && !LEFT_OUT.test(file) && existsSync(path.join(root, file)),
    );
  const texts = new Map(
    await Promise.all(
      files.map(async (file): Promise<[string, string]> => [
        file,
        await readFile(path.join(root, file), 'utf8'),
      ]),
    ),
  );
  const targets = targetsIn(texts);
  const exists = (file: string): boolean => existsSync(path.join(root, file));
  return [...texts].flatMap(([file, text]) =>
    [...referenceFaults(text, targets), ...(MAPS.includes(file) ? pathFaults(text, exists) : [])].map(
      (fault) => `${file}: ${fault}`,
    ),
  );
}

function targetsIn(texts: ReadonlyMap<string, string>): Targets {
  const pages = [...texts].filter(([file]) => file.startsWith('docs/') && file.endsWith('.md'));
  const numbers = pages.flatMap(([file]) => /^docs\/decisions\/(\d{4})-/.exec(file)?.[1] ?? []);
  return {
    decisions: new Set(numbers),
    pages: new Map(pages.map(([file, text]) => [file, anchorsOf(text)])),
  };
}
