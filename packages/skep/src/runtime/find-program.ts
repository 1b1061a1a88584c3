import { accessSync, constants, existsSync } from 'node:fs';
import path from 'node:path';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Absolute path of an executable on the PATH or where systems have their own. */
export function findProgram(name: string, env: Environment): string | undefined {
  const directories = [
    ...(env['PATH'] ?? '').split(':').filter((one) => path.isAbsolute(one)),
    '/usr/bin',
    '/usr/local/bin',
    '/usr/sbin',
  ];
  for (const directory of directories) {
    const program = path.join(directory, name);
    if (isExecutable(program)) return program;
  }
  return undefined;
}

function isExecutable(file: string): boolean {
  // Most directories have none of it, and an exception costs more than a look.
  if (!existsSync(file)) return false;
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
