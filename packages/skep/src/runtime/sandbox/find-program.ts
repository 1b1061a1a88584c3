import { access, constants } from 'node:fs/promises';
import path from 'node:path';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Absolute path of an executable on the PATH or where systems have their own. */
export async function findProgram(name: string, env: Environment): Promise<string | undefined> {
  const directories = [
    ...(env['PATH'] ?? '').split(':').filter((one) => path.isAbsolute(one)),
    '/usr/bin',
    '/usr/local/bin',
    '/usr/sbin',
  ];
  for (const directory of directories) {
    const program = path.join(directory, name);
    if (await isExecutable(program)) return program;
  }
  return undefined;
}

async function isExecutable(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
}
