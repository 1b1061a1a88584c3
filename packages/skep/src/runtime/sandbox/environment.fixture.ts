import path from 'node:path';
import type { RuntimeEnvironment } from '../environment.ts';

/** That of a user whose home is this directory, with all that Skep keeps below it. */
export function environmentIn(directory: string, more: Partial<RuntimeEnvironment> = {}): RuntimeEnvironment {
  let drawn = 0;
  return {
    env: {},
    home: directory,
    platform: 'linux',
    execPath: process.execPath,
    dataDir: path.join(directory, 'data'),
    cacheDir: path.join(directory, 'cache'),
    owner: 'o',
    randomId: () => `${(drawn += 1)}`,
    ...more,
  };
}
