import { join } from 'node:path';
import { hasCode } from '@skep/core/errors/skep-error.ts';
import { atomicWrite, removeFile } from '@skep/core/files/atomic-write.ts';
import type { Places } from '@skep/core/files/places.ts';
import { readJson } from '@skep/core/files/read-limited.ts';
import {
  bool,
  listOf,
  members,
  optional,
  text,
  wholeNumber,
  type ShapeType,
} from '@skep/core/settings/shape.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { checkWorkloadName } from '../settings/workload-name.ts';

const tool = members({
  name: text,
  /** SHA-256 of all that the server says of it, as JSON with sorted members, in hex. */
  digest: text,
  /** What its definition takes of a model's context, about. */
  tokens: wholeNumber(0),
});
export type FoundTool = ShapeType<typeof tool>;

const foundShape = members({
  /** How the server calls itself, which may be anything. */
  server: optional(members({ name: text, version: optional(text) })),
  protocol_version: optional(text),
  /** Absent where the server could not be asked. */
  tools: optional(listOf(tool)),
  /** False where the server has more tools than were read. */
  complete: bool,
  /** When, in RFC 3339. */
  at: text,
});
/** What a server said of itself at its last start: who it is, and its tools (docs/behaviour/run.md#ready). */
export type FoundServer = ShapeType<typeof foundShape>;

const MAX_BYTES = 2 * 1024 * 1024;

const pathOf = (places: Places, name: string): string =>
  join(places.serversDir, `${checkWorkloadName(name)}.json`);

/** Undefined where nothing is known, also where the file is damaged: the next start writes it anew. */
export async function readFound(places: Places, name: string): Promise<FoundServer | undefined> {
  try {
    const value = await readJson(pathOf(places, name), { maxBytes: MAX_BYTES, what: 'file of a server' });
    return foundShape(value, (why) => {
      throw new SkepError('workload/state-unreadable', { message: why });
    });
  } catch (error) {
    if (!(error instanceof SkepError) || hasCode(error, 'run/invalid-name')) throw error;
    return undefined;
  }
}

export async function writeFound(places: Places, name: string, found: FoundServer): Promise<void> {
  // A damaged one is as good as none.
  await atomicWrite(pathOf(places, name), `${JSON.stringify(found)}\n`, { mode: 0o600, durable: false });
}

export async function deleteFound(places: Places, name: string): Promise<void> {
  await removeFile(pathOf(places, name));
}

/** How many tools there are and what they weigh, where the server could be asked. */
export function weightOf({ tools, complete }: FoundServer): FoundWeight | undefined {
  if (tools === undefined) return undefined;
  return { count: tools.length, tokens: tools.reduce((sum, { tokens }) => sum + tokens, 0), complete };
}

export const foundWeight = members({ count: wholeNumber(0), tokens: wholeNumber(0), complete: bool });
/** What the tools of a server take of a model's context. */
export type FoundWeight = ShapeType<typeof foundWeight>;
