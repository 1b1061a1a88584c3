import { constants } from 'node:fs';
import { chown, lstat, mkdir, open, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { ifThere } from '@skep/core/files/errno.ts';
import type { ConfinedUser } from '../../permissions/confined-user-name.ts';
import type { Mount } from '../../permissions/mounts.ts';
import type { Bubblewrap } from './confine.ts';
import { confinedUser } from '../../permissions/confined-user.ts';
import { runToItsEnd } from './run-to-end.ts';
import { APP, NODE, packageCommand } from './package-trees.ts';

export interface CompileAhead {
  readonly bubblewrap: Bubblewrap;
  /** Real path of the Node binary. */
  readonly node: string;
  /** A directory of this fetch alone; `tree` in it is the package. */
  readonly stage: string;
  readonly signal: AbortSignal;
}

/** Below a package tree; holds one directory. */
const KEPT = '.compiled';
/** Where Node looks for it inside. */
const INSIDE = '/skep/compiled';
const SCRIPT = '/skep/end-soon.cjs';

/** Most servers end when their input does; the others are ended after this, milliseconds. Node writes at the end. */
const END_SOON = `setTimeout(() => { require('node:module').flushCompileCache(); process.exit(); }, 1000).unref();\n`;
const PATIENCE_MS = 10_000;
const MAX_FILES = 20_000;
const MAX_BYTES = 64 * 1024 * 1024;

/**
 * Keeps with a package what Node compiles of it (node:module, compile cache), so that each of its servers starts sooner:
 * the server is started once where it has no network, no input and nothing of the user. Servers can only read it, and
 * only those of this package, so none can put anything into another. Without it they start as before.
 */
export async function compileAhead({ bubblewrap, node, stage, signal }: CompileAhead): Promise<void> {
  const tree = path.join(stage, 'tree');
  const [program, ...args] = await packageCommand(tree);
  if (program !== NODE) return;
  const user = await confinedUser({ asRoot: bubblewrap.setpriv !== undefined, name: 'compile', mounts: [] });
  const [compiled, script] = [path.join(stage, 'compiled'), path.join(stage, 'end-soon.cjs')];
  await mkdir(compiled);
  await writeFile(script, END_SOON, { mode: 0o644 });
  if (bubblewrap.setpriv !== undefined) await chown(compiled, user.uid, user.gid);
  const late = AbortSignal.timeout(PATIENCE_MS);
  const confined = {
    command: [NODE, '--require', SCRIPT, ...args],
    env: { NODE_ENV: 'production', NODE_COMPILE_CACHE: INSIDE },
    mounts: [
      { source: node, target: NODE, readOnly: true },
      { source: tree, target: APP, readOnly: true },
      { source: script, target: SCRIPT, readOnly: true },
      { source: compiled, target: INSIDE, readOnly: false },
    ],
    network: 'none',
    user,
    endsWithParent: true,
  } as const;
  try {
    // Many servers refuse to start without arguments, and have loaded everything by then.
    await runToItsEnd(bubblewrap, confined, AbortSignal.any([signal, late]), { stage });
  } catch (error) {
    if (!late.aborted || signal.aborted) throw error;
  }
  await keepCompiled(compiled, path.join(tree, KEPT));
}

/** Copies what Node has left there. The server could write anything: what looks otherwise is not taken. */
export async function keepCompiled(from: string, to: string): Promise<void> {
  const [name, ...others] = await readdir(from);
  const tag = /^(v\d[\w.-]{0,60})-\d+$/.exec(name ?? '')?.[1];
  if (name === undefined || tag === undefined || others.length > 0) return;
  if (!(await lstat(path.join(from, name))).isDirectory()) return;
  const files = await readdir(path.join(from, name));
  if (files.length > MAX_FILES || !files.every((file) => /^[0-9a-f]{1,16}$/.test(file))) return;
  const target = path.join(to, tag);
  await mkdir(target, { recursive: true, mode: 0o755 });
  let left = MAX_BYTES;
  for (const file of files) {
    const content = await readPlain(path.join(from, name, file), left);
    if (content === undefined) continue;
    left -= content.length;
    await writeFile(path.join(target, file), content, { mode: 0o644, flag: 'wx' });
  }
}

/** Undefined for anything but a file of at most that many bytes. */
async function readPlain(file: string, maxBytes: number): Promise<Buffer | undefined> {
  const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;
  await using opened = await open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch((cause: unknown) => {
    throw new SkepError('runtime/prefetch-failed', { message: `"${file}" cannot be read`, cause });
  });
  const found = await opened.stat();
  if (!found.isFile() || found.size > maxBytes) return undefined;
  const content = Buffer.alloc(found.size);
  const { bytesRead } = await opened.read(content, 0, found.size, 0);
  return content.subarray(0, bytesRead);
}

/** What was compiled ahead for a package, for a server of this user. Node leaves aside what another release compiled. */
export async function compiledAhead(
  tree: string,
  { uid }: ConfinedUser,
): Promise<{ readonly mounts: readonly Mount[]; readonly env: Readonly<Record<string, string>> }> {
  const kept = path.join(tree, KEPT);
  const [tag] = (await ifThere(readdir(kept))) ?? [];
  if (tag === undefined) return { mounts: [], env: {} };
  // Node names it after its own release and the user it runs as.
  const mount = { source: path.join(kept, tag), target: `${INSIDE}/${tag}-${uid}`, readOnly: true };
  return { mounts: [mount], env: { NODE_COMPILE_CACHE: INSIDE } };
}
