import { realpathSync } from 'node:fs';
import path from 'node:path';
import type { Mount } from '../../permissions/mounts.ts';

const SEEN = '/skep/names';

/**
 * How this machine resolves names, for a program that lives longer than any of its files: these are replaced when a network
 * comes or goes, so what is mounted is the directory that each lies in.
 */
export function machineNames(): {
  readonly mounts: readonly Mount[];
  readonly links: Readonly<Record<string, string>>;
} {
  const files = ['/etc/resolv.conf', '/etc/hosts', '/etc/nsswitch.conf'].flatMap((file) => {
    const real = realIfThere(file);
    return real === undefined ? [] : [{ file, real }];
  });
  const directories = [...new Set(files.map(({ real }) => path.dirname(real)))];
  const seen = (directory: string): string => path.posix.join(SEEN, String(directories.indexOf(directory)));
  return {
    mounts: directories.map((source) => ({ source, target: seen(source), readOnly: true })),
    links: Object.fromEntries(
      files.map(({ file, real }) => [file, path.posix.join(seen(path.dirname(real)), path.basename(real))]),
    ),
  };
}

function realIfThere(file: string): string | undefined {
  try {
    return realpathSync(file);
  } catch {
    return undefined;
  }
}
