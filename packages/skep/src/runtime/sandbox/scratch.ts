import { mkdir, readdir } from 'node:fs/promises';
import path from 'node:path';
import { pid } from 'node:process';
import type { RuntimeEnvironment } from '../environment.ts';
import { identify } from './linux-process.ts';
import { removeFiles } from './remove-files.ts';

/**
 * A name below a directory of ours for what this process makes or removes. It begins with a dot, as no workload and no
 * package does, and says whose it is, so that what a killed command left can be told from what is in use.
 */
export async function scratchName(environment: RuntimeEnvironment): Promise<string> {
  const self = await identify(pid);
  return `.${pid}-${self?.startTime ?? ''}-${environment.randomId()}`;
}

/** Makes such a directory, for this user alone, and removes those of processes that are gone. */
export async function scratchDirectory(parent: string, environment: RuntimeEnvironment): Promise<string> {
  await mkdir(parent, { recursive: true, mode: 0o750 });
  await removeAbandoned(parent);
  const directory = path.join(parent, await scratchName(environment));
  await mkdir(directory, { mode: 0o700 });
  return directory;
}

async function removeAbandoned(parent: string): Promise<void> {
  for (const name of (await readdir(parent)).filter((one) => one.startsWith('.'))) {
    const [, owner, startTime] = /^\.(\d+)-(\d+)-/.exec(name) ?? [];
    if (startTime !== undefined && (await identify(Number(owner)))?.startTime === startTime) continue;
    await removeFiles(path.join(parent, name));
  }
}
