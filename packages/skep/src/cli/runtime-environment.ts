import { randomBytes } from 'node:crypto';
import type { RuntimeEnvironment } from '../runtime/environment.ts';
import { ownerOf } from '../supervisor/owner.ts';
import type { Context } from './context.ts';

/** What a runtime may know of this machine and user. */
export function runtimeEnvironment(context: Context): RuntimeEnvironment {
  const { env, home, platform, places, program, spares, isAlive } = context;
  return {
    env,
    home,
    platform,
    execPath: program.node,
    dataDir: places.dataDir,
    locksDir: places.locksDir,
    cacheDir: places.cacheDir,
    owner: ownerOf(places.stateDir),
    randomId: () => randomBytes(8).toString('hex'),
    spares,
    isAlive,
  };
}
