import { hasCode } from '@skep/core/errors/skep-error.ts';
import { readText } from '@skep/core/files/read-limited.ts';
import type { Context } from '../cli/context.ts';
import { mayNeedEngine } from '../supervisor/wake-early.ts';

/**
 * Whether what `skep run` is given most likely gets a network of its own from a container engine; the program that knows
 * is not loaded yet (decision 0464). Where this is wrong, a network is made in vain, or later. Never rejects.
 */
export async function getsNetwork(
  argv: readonly string[],
  { connectRuntime, places }: Context,
): Promise<boolean> {
  const end = argv.indexOf('--');
  const words = end === -1 ? argv : argv.slice(0, end);
  const isUsual = words.every((word) => !word.startsWith('-') || USUAL.test(word));
  if (words.length === 0 || !isUsual || !mayNeedEngine(argv) || connectRuntime) return false;
  try {
    const settings = await readText(places.configFile, { maxBytes: MAX_SETTINGS_BYTES });
    return !settings.includes('isolation');
  } catch (error) {
    return hasCode(error, 'file/not-found');
  }
}

/** Flags that people give most, of which none says anything of networks or runtimes. */
const USUAL =
  /^(?:--(?:name|group|label|env|env-file|secret|volume|publish|transport|proxy-mode|proxy-port|target-port|tools|no-check)(?:=|$)|-[elpv])/;

const MAX_SETTINGS_BYTES = 64 * 1024;
