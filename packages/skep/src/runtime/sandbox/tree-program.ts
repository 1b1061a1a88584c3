import { readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { ifThere } from '@skep/core/files/errno.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';

/** How the server of a tree is started, as the sandbox sees it. */
export interface TreeProgram {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Files and directories of the system that it was made for and needs. */
  readonly needs: readonly string[];
}

/** Skep itself writes it into a tree that npm did not make. */
const PROGRAM_FILE = 'skep.json';

/** Replaces whatever a package manager, or a package, has put there: it may be a link by now. */
export async function writeTreeProgram(tree: string, program: TreeProgram): Promise<void> {
  await dropTreeProgram(tree);
  const text = `${JSON.stringify(program)}\n`;
  await writeFile(path.join(tree, PROGRAM_FILE), text, { flag: 'wx', mode: 0o644 });
}

/** In a tree of npm nothing of this name is Skep's. */
export async function dropTreeProgram(tree: string): Promise<void> {
  await rm(path.join(tree, PROGRAM_FILE), { recursive: true, force: true });
}

/** Undefined for a tree of npm. Throws `runtime/start-failed` for one that says something else. */
export async function readTreeProgram(tree: string): Promise<TreeProgram | undefined> {
  const file = path.join(tree, PROGRAM_FILE);
  const text = await ifThere(readFile(file, 'utf8'));
  if (text === undefined) return undefined;
  const program = parsedJson(text);
  if (isTreeProgram(program)) return program;
  throw new SkepError('runtime/start-failed', {
    message: `"${file}" does not say how the package is started`,
    hint: 'remove the workload and run it again, which fetches the package anew',
  });
}

function isTreeProgram(value: unknown): value is TreeProgram {
  if (!isRecord(value) || !isRecord(value['env'])) return false;
  const { command, env, needs } = value;
  return isTexts(command) && command.length > 0 && isTexts(Object.values(env)) && isTexts(needs) && needs.every(isOfSystem); // prettier-ignore
}

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string');

/** Nothing else is ever mounted because a package says so. */
const isOfSystem = (file: string): boolean => file.startsWith('/usr/') && path.normalize(file) === file;
