import { abilitiesOf, glanceAtRuntimes, type Abilities } from '../runtime/glance.ts';
import type { Context } from './context.ts';

/** What runs where this command runs. */
export async function abilitiesHere(context: Context): Promise<Abilities> {
  const { env, home, platform, places, connectRuntime } = context;
  if (connectRuntime) return abilitiesOf(await connectRuntime(undefined));
  return glanceAtRuntimes({ env, home, platform, cacheDir: places.cacheDir });
}
