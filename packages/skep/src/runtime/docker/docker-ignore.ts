import path from 'node:path';
import { isIgnored, parseIgnore, type IgnorePatterns } from '../../permissions/gitignore.ts';

/** True for what a build is not to see. Directories are told apart because exceptions may lie below one that is out. */
export type LeavesOut = (name: string, isDirectory: boolean) => boolean;

interface Rule {
  readonly patterns: IgnorePatterns;
  readonly isException: boolean;
}

/**
 * What a `.dockerignore` leaves out ("Dockerfile reference", `.dockerignore` file): patterns from the root, `*` and `?`
 * within a name, `**` across names, `!` for exceptions; the last rule that fits a path, or what it lies in, counts. Names
 * are relative.
 */
export function leftOutBy(text: string): LeavesOut {
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/);
  const rules = lines.flatMap(ruleOf);
  const hasExceptions = rules.some(({ isException }) => isException);
  return (name, isDirectory) => {
    const names = name.split(path.sep);
    const fits = ({ patterns }: Rule): boolean =>
      names.some((_one, at) => isIgnored(patterns, names.slice(0, at + 1), true));
    const isOut = rules.findLast(fits)?.isException === false;
    return isOut && !(isDirectory && hasExceptions);
  };
}

function ruleOf(line: string): readonly Rule[] {
  if (line.startsWith('#')) return [];
  const trimmed = line.trim();
  const isException = trimmed.startsWith('!');
  const written = (isException ? trimmed.slice(1).trim() : trimmed).replace(/^\/+/, '');
  const pattern = path.posix.normalize(written).replace(/\/$/, '');
  if (written === '' || pattern === '.') return [];
  return [{ patterns: parseIgnore(`/${pattern}`), isException }];
}
