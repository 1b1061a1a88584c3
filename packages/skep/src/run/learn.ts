import { lstat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { atomicWrite } from '@skep/core/files/atomic-write.ts';
import { ifThere } from '@skep/core/files/errno.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { Context } from '../cli/context.ts';
import type { Decision } from '../egress/decision.ts';
import { hostAndPort } from '../permissions/allowed-hosts.ts';
import { profileMounts, type PermissionProfile } from '../permissions/profile.ts';
import type { Learning } from '../plan/plan.ts';
import { fileIsThere } from '../plan/plan-learning.ts';
import { toFacts, type Fact } from '../print/table.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { Runtime, SeenFiles } from '../runtime/runtime.ts';
import { lackingPaths, type Lacking } from './lacking-paths.ts';
import { isProposed, proposedProfile } from './learned-profile.ts';

/** As many of one kind as a person is shown. */
const MAX_SHOWN = 12;

/**
 * Tells what a workload that learned was seen to do, and writes the least profile that allows it (docs/behaviour/run.md#learn).
 * To be called when it has ended and before it is removed. Fails with `usage/conflict` where the file is there by now.
 */
export async function tellLearned(
  config: RunConfig,
  { runtime, learning }: { readonly runtime: Runtime; readonly learning: Learning },
  context: Context,
): Promise<void> {
  const { terminal, home } = context;
  const files = await runtime.seen(config.name);
  const { decisions, unseen } = await decisionsOf(config.name, runtime);
  const lacking = await lackingPaths(files, config, home);
  const { name, permission_profile: profile } = config;
  const proposed = proposedProfile({ name, profile, decisions, files, lacking: lacking.rights });
  const facts = [
    ...hostFacts(decisions),
    ...fileFacts(files, profile),
    ...lackingFacts(lacking),
    ...listed('Not seen', [...files.unseen, ...unseen]),
  ];
  terminal.err(`${printable(name)} was seen to do this:\n`);
  terminal.err(toFacts(facts.length === 0 ? [['Reaches', 'nothing']] : facts).replaceAll(/^(?=.)/gm, '  '));
  await writeNew(learning.file, `${JSON.stringify(proposed, undefined, 2)}\n`);
  const where = shownPath(learning.file, context.cwd);
  terminal.err(
    `The least profile that allows it is in ${printable(where)}. Read it before you use it: a server asks for what it likes.\n`,
  );
  if (learning.repeat.length > 0) {
    terminal.err(`Give these again with what they had: ${learning.repeat.join(', ')}\n`);
  }
  terminal.err(`${printable(commandLine(learning, where))}\n`);
}

async function decisionsOf(
  name: string,
  runtime: Runtime,
): Promise<{ readonly decisions: readonly Decision[]; readonly unseen: readonly string[] }> {
  try {
    return { decisions: await runtime.traffic(name), unseen: [] };
  } catch (error) {
    // One that never came to run was removed already.
    if (!(error instanceof SkepError)) throw error;
    return { decisions: [], unseen: ['which hosts it reached'] };
  }
}

async function writeNew(file: string, text: string): Promise<void> {
  const isFree = async (): Promise<boolean> => (await ifThere(lstat(file))) === undefined;
  let written = false;
  await atomicWrite(file, text, { confirm: async () => (written = await isFree()) });
  if (!written) throw fileIsThere(file);
}

function hostFacts(decisions: readonly Decision[]): readonly Fact[] {
  const out = decisions.filter(({ via }) => via !== 'ingress');
  const connected = new Set(out.flatMap(({ host, port }) => (port === undefined ? [] : [host])));
  const told = out.filter(({ host, port }) => port !== undefined || !connected.has(host));
  const texts = (decision: Decision['decision']): readonly string[] => {
    const counts = new Map<string, number>();
    for (const one of told.filter((some) => some.decision === decision)) {
      const note = one.decision === 'allowed' && !isProposed(one) ? ', not proposed' : '';
      const text = `${hostAndPort(one.host, one.port)}${one.port === undefined ? ' (its name alone)' : ''}${note}`;
      counts.set(text, (counts.get(text) ?? 0) + one.count);
    }
    return [...counts].map(([text, count]) => `${text} × ${count}`);
  };
  return [
    ...listed('Reaches', texts('allowed')),
    ...listed('Refused', texts('denied')),
    ...listed('Not found', texts('not-found')),
  ];
}

function fileFacts({ paths, complete }: SeenFiles, profile: PermissionProfile): readonly Fact[] {
  const mounts = profileMounts(profile, '/');
  const targets = new Set(mounts.map(({ target }) => target));
  const seen = mounts.flatMap((mount) => {
    // An engine makes the places that it mounts at, which is nothing that the server did.
    const how = complete ? paths.get(mount.target) : undefined;
    return how === undefined ? [] : [{ ...mount, changes: how.changes }];
  });
  const text = ({ source, target }: { readonly source: string; readonly target: string }): string =>
    source === target ? source : `${source} (as ${target})`;
  const own = [...paths].filter(([path, { changes, there }]) => changes && there && !targets.has(path));
  const written = seen.filter(({ changes, readOnly }) => changes && !readOnly).map(text);
  const refused = seen.filter(({ changes, readOnly }) => changes && readOnly).map(text);
  const unused = complete ? mounts.filter(({ target }) => !paths.has(target)).map(text) : [];
  return [
    ...listed('Reads', seen.map(text)),
    ...listed('Writes', [...written, ...own.map(([path]) => `${path} (its own)`)]),
    ...listed('Would write', refused),
    ...listed('Does not use', unused),
  ];
}

function lackingFacts({ rights, kept, more }: Lacking): readonly Fact[] {
  const lacks = rights.map(({ path, readOnly }) => `${path} (to ${readOnly === false ? 'write' : 'read'})`);
  return [
    ...listed('Lacks', lacks),
    ...listed('Not proposed', kept),
    ...(more ? listed('Not seen', ['all of the paths that it asked for']) : []),
  ];
}

/** Below each other, the name beside the first. */
function listed(name: string, texts: readonly string[]): readonly Fact[] {
  const more = texts.length - MAX_SHOWN;
  const shown = [...texts.slice(0, MAX_SHOWN), ...(more > 0 ? [`and ${more} more`] : [])];
  return shown.map((text, at): Fact => [at === 0 ? name : '', text]);
}

const shownPath = (file: string, cwd: string): string =>
  dirname(file) === cwd ? `./${basename(file)}` : file;

function commandLine({ again: { words, args } }: Learning, file: string): string {
  const flags = ['--permission-profile', file, '--isolate-network'];
  const rest = args.length === 0 ? [] : ['--', ...args];
  return ['skep', 'run', ...words, ...flags, ...rest].map(shellWord).join(' ');
}

const shellWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
