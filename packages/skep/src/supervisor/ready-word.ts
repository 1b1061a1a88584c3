import { writeSync } from 'node:fs';
import { z } from 'zod';
import { toFailure } from './failure.ts';
import { failureSchema } from './protocol.ts';
import { READY_FD } from './spawn-supervisor.ts';

const wordSchema = z.union([
  /** Clients are answered, by this supervisor or by another one that was there already. */
  z.object({ up: z.literal(true) }),
  z.object({ error: failureSchema }),
]);
export type ReadyWord = z.infer<typeof wordSchema>;

export function parseReadyWord(line: string): ReadyWord | undefined {
  try {
    return wordSchema.parse(JSON.parse(line));
  } catch {
    return undefined;
  }
}

/** Tells it once, to the descriptor that `SKEP_READY_FD` names; nobody may be there to hear. */
export function openReadyWord(env: Readonly<Record<string, string | undefined>>): {
  readonly up: () => void;
  readonly failed: (error: unknown) => void;
} {
  let told = env['SKEP_READY_FD'] !== String(READY_FD);
  const tell = (word: ReadyWord): void => {
    if (told) return;
    told = true;
    try {
      writeSync(READY_FD, `${JSON.stringify(word)}\n`);
    } catch {
      // Whoever started it has gone, or it was started again by its watcher.
    }
  };
  return { up: () => tell({ up: true }), failed: (error) => tell({ error: toFailure(error) }) };
}
