import { writeSync } from 'node:fs';
import { isRecord } from '@skep/core/json/is-record.ts';
import { readAnswer, toFailure, type Answer } from './protocol.ts';
import { READY_FD } from './spawn-supervisor.ts';

/** `up`: clients are answered, by this supervisor or by another one that was there already. */
export type ReadyWord = { readonly up: true } | Extract<Answer, { readonly error: unknown }>;

export function parseReadyWord(line: string): ReadyWord | undefined {
  try {
    const word: unknown = JSON.parse(line);
    if (isRecord(word) && word['up'] === true) return { up: true };
    const answer = readAnswer(word);
    return 'error' in answer ? answer : undefined;
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
