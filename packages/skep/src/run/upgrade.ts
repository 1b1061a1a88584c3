import { isDeepStrictEqual } from 'node:util';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { wrapText } from '@skep/core/settings/to-help.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { Context } from '../cli/context.ts';
import { loadAppConfig } from '../config/app-config.ts';
import { mergeSettings } from '@skep/core/settings/merge.ts';
import type { UpgradePlan } from '../plan/plan.ts';
import { planUpgrade, versionText, type UpgradeRequest } from '../plan/plan-upgrade.ts';
import { requireConsent } from '../plan/plan-permissions.ts';
import { preparationOf, sourceOf } from '../plan/preparation.ts';
import { settingsOfMachine } from '../plan/settings-of-run.ts';
import { openProgress, type Progress } from '../print/progress.ts';
import { findRunConfig, loadRunConfig } from '../run-config/file.ts';
import { deletePrevious, findPrevious, savePrevious } from '../run-config/previous.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { Prepared, Runtime } from '../runtime/runtime.ts';
import { runSettings } from '../settings/run-settings.ts';
import { readFound, type FoundServer } from '../supervisor/found-server.ts';
import { checkCreate } from '../supervisor/policy.ts';
import { isImageUsed } from '../supervisor/remove-workload.ts';
import { lockName } from '../workloads/name-lock.ts';
import { surroundingsOf } from './carry-out.ts';
import { forgetUnused, storeOwnSecrets, type Stored } from './own-secrets.ts';
import { refuseForeground, swapConfig } from './swap-config.ts';

export interface UpgradeChoice extends UpgradeRequest {
  /** Ask nothing. */
  readonly yes: boolean;
  /** Only say what would happen. */
  readonly dryRun: boolean;
}

interface Work {
  readonly name: string;
  readonly context: Context;
  readonly progress: Progress;
}

/**
 * Upgrades one workload: says what changes, asks, and replaces it, with its name, port, group and data. A version that
 * does not start, or whose tools the person does not want, is taken back. Fails with `run/cancelled` when the person
 * does not agree, and with what kept the new version from starting.
 */
export async function upgradeWorkload(choice: UpgradeChoice, context: Context): Promise<void> {
  const { name } = choice;
  const work: Work = { name, context, progress: openProgress(context.terminal) };
  using _lock = await lockName(name, context);
  try {
    await refuseForeground(name, context);
    const plan = await planUpgrade(choice, surroundingsOf(context));
    const reference = plan.config.image;
    await checkCreate(context.policy, plan.wanted);
    const pinned = await plan.runtime.pin({ name, reference });
    const prepared = await prepare(plan.runtime, plan, work);
    const isSame = prepared.reference === reference && (await plan.runtime.isCurrent(name));
    if (isSame) {
      context.terminal.out(`${name} is up to date: ${printable(versionText(plan.config))}\n`);
      return;
    }
    // A tag may mean the new image by now.
    const earlier = { ...plan.config, image: prepared.reference === reference ? pinned : reference };
    let stored: Stored | undefined;
    try {
      const next = await agree(plan, prepared, { ...choice, ...work });
      if (next === undefined) return await discard(prepared, plan.runtime, work);
      // The person may have taken a while, and other commands meanwhile.
      if (!isDeepStrictEqual(await loadRunConfig(context.places, name), plan.config)) {
        throw new SkepError('run/cancelled', {
          message: `${name} was changed by another command meanwhile`,
          hint: 'nothing was upgraded; try again',
        });
      }
      await checkCreate(context.policy, next);
      stored = await storeOwnSecrets(next, context);
      await replaceAndTell(earlier, stored.config, { ...choice, ...work });
    } catch (error) {
      await forgetUnused(name, stored?.references ?? [], context).catch(() => {});
      await discard(prepared, plan.runtime, work);
      throw error;
    }
  } finally {
    work.progress.end();
  }
}

/** Puts a workload back to what it was before its last upgrade, which is then what can be gone forward to. */
export async function undoUpgrade(name: string, context: Context): Promise<void> {
  const work: Work = { name, context, progress: openProgress(context.terminal) };
  const { places, terminal } = context;
  using _lock = await lockName(name, context);
  try {
    await refuseForeground(name, context);
    const current = await loadRunConfig(places, name);
    const previous = await findPrevious(places, name);
    if (previous === undefined) {
      throw new SkepError('workload/no-earlier-version', {
        message: `no earlier version of "${name}" is kept`,
      });
    }
    const around = surroundingsOf(context);
    const { runtime, info } = await around.connect(previous.runtime);
    await info;
    const back = (await runtime.has(previous.image)) ? previous : await prepareAgain(previous, runtime, work);
    // Where it is, how it is reached and what it may do is no matter of its version (decision 0248).
    const target = { ...back, group: current.group, port: current.port, ...rightsOf(current) };
    await replace(target, current, work);
    tellLines([`${name} is back at ${printable(versionText(target))}, with the data it has now`], terminal);
  } finally {
    work.progress.end();
  }
}

/** What a person granted, and has taken away since. */
function rightsOf(config: RunConfig): Partial<RunConfig> {
  const { permission_profile, isolate_network, allow_runtime_gateway, mount_sources, volumes } = config;
  return {
    permission_profile,
    volumes,
    isolate_network: isolate_network ?? false,
    allow_runtime_gateway: allow_runtime_gateway ?? false,
    ...(mount_sources === undefined ? {} : { mount_sources }),
  };
}

/** Of the version that it had, though the person may have named none. */
async function prepareAgain(config: RunConfig, runtime: Runtime, work: Work): Promise<RunConfig> {
  const { context } = work;
  const version = config.package_version;
  const exact =
    config.package && version !== undefined ? { ...config, package: { ...config.package, version } } : config;
  const app = await loadAppConfig(context.places);
  const settings = mergeSettings(runSettings, settingsOfMachine(app, context));
  const build = config.runtime_config ?? {};
  const preparation = preparationOf(sourceOf(exact), { build, settings, app }, surroundingsOf(context));
  const { reference: image } = await prepare(runtime, { preparation }, work);
  return { ...config, image };
}

async function prepare(
  runtime: Runtime,
  { preparation }: Pick<UpgradePlan, 'preparation'>,
  { progress, context }: Work,
): Promise<Prepared> {
  const prepared = await runtime.prepare({ ...preparation, report: progress, signal: context.signal });
  if (prepared.doubt !== undefined) context.terminal.err(`Warning: ${printable(prepared.doubt)}\n`);
  progress.end();
  return prepared;
}

/** What was prepared for nothing; what a workload runs from stays. */
async function discard({ ours, reference }: Prepared, runtime: Runtime, { context }: Work): Promise<void> {
  if (ours && !(await isImageUsed(reference, '', context.places))) await runtime.discard(reference);
}

/** Says what changes and asks; the configuration to be saved, or undefined where that was all. */
async function agree(
  { config, missing, wishes, grants = [], configure }: UpgradePlan,
  prepared: Prepared,
  { yes, dryRun, name, context }: UpgradeChoice & Work,
): Promise<RunConfig | undefined> {
  const { terminal, confirm, ask } = context;
  const shown = await configure(prepared, {});
  const [from, to] = [printable(versionText(config)), printable(versionText(shown))];
  const change = from === to ? `${to}, whose content has changed` : `${from} → ${to}`;
  const kept = `It keeps the rights it has; skep rm ${name} and skep run grant others, and keep its data.`;
  const notes = [
    ...grants.map((grant) => `It asks to ${grant}.`),
    ...(wishes.length === 0 ? [] : [...wishes, kept]),
  ];
  tellLines([`${name}: ${change}`, ...notes.map((note) => `  ${printable(note)}`)], terminal);
  if (dryRun) return undefined;
  if (yes) {
    const hint = 'upgrade it without --yes, which asks';
    await requireConsent({ who: `the new ${name}`, grants, hint, confirm: undefined });
  } else {
    if (!confirm) {
      throw new SkepError('usage/missing-argument', {
        message: 'an upgrade asks first, and nobody can be asked here',
        hint: 'agree with --yes, or see what would happen with --dry-run',
      });
    }
    if (!(await confirm(`Upgrade ${name}?`)))
      throw new SkepError('run/cancelled', { hint: 'nothing was changed' });
  }
  const answers: Record<string, string> = {};
  for (const one of missing) {
    const value = ask ? await ask(one) : '';
    if (value !== '') answers[one.name] = value;
  }
  const open = missing.filter((one) => answers[one.name] === undefined).map((one) => one.name);
  if (open.length > 0) {
    throw new SkepError('run/missing-env', {
      message: `${to} needs variables that ${name} does not have: ${open.join(', ')}`,
      hint: `remove it with skep rm ${name}, which keeps its data, and run it with -e ${open[0] ?? ''}=VALUE`,
    });
  }
  return configure(prepared, answers);
}

async function replaceAndTell(
  earlier: RunConfig,
  next: RunConfig,
  { yes, name, context, progress }: UpgradeChoice & Work,
): Promise<void> {
  const { places, terminal, confirm } = context;
  const before = await readFound(places, name);
  const older = await findPrevious(places, name).catch(() => undefined);
  const work = { name, context, progress };
  const wasRunning = await replace(next, earlier, work);
  const tools = wasRunning ? compareTools(before, await readFound(places, name)) : undefined;
  if (tools !== undefined && tools.lines.length > 0) {
    tellLines(
      tools.lines.map((line) => `  ${printable(line)}`),
      terminal,
    );
    // What clients rely on is another by now; the person sees it before anything is built on it.
    if (tools.isRisky && !yes && confirm && !(await confirm(`Keep ${printable(versionText(next))}?`))) {
      await replace(earlier, next, work);
      await (older ? savePrevious(places, older) : deletePrevious(places, name));
      throw new SkepError('run/cancelled', {
        hint: `${name} is back at ${versionText(earlier)}, with the data it has now`,
      });
    }
  }
  if (older?.image_is_ours === true && older.image !== earlier.image && older.image !== next.image) {
    const { runtime } = await surroundingsOf(context).connect(older.runtime);
    if (!(await isImageUsed(older.image, '', places))) await runtime.discard(older.image);
  }
  const state = wasRunning ? 'runs' : 'is stopped, at';
  const back = `skep upgrade --undo ${name} goes back`;
  tellLines([`${name} ${state} ${printable(versionText(next))}; ${back}`], terminal);
}

/** As `swapConfig`, remembering `current` for an undo. */
async function replace(next: RunConfig, current: RunConfig, work: Work): Promise<boolean> {
  const { places } = work.context;
  const older = await findPrevious(places, work.name).catch(() => undefined);
  await savePrevious(places, current);
  try {
    const [before, after] = [printable(versionText(current)), printable(versionText(next))];
    const failed = `${work.name} runs ${before} again, because ${after} did not start`;
    const stopped = `${work.name} stays stopped, at ${before}`;
    return await swapConfig(next, current, { ...work, failed, stopped });
  } catch (error) {
    // Somebody may have removed it meanwhile, with everything that is kept for it.
    const isThere = (await findRunConfig(places, work.name)) !== undefined;
    await (older && isThere ? savePrevious(places, older) : deletePrevious(places, work.name));
    throw error;
  }
}

/** Lines that fit the terminal, each with its indentation. */
function tellLines(lines: readonly string[], terminal: Context['terminal']): void {
  const { liveOut, width } = terminal;
  const fitted = lines.flatMap((line) => {
    const [indent = ''] = /^ */.exec(line) ?? [];
    return wrapText(line, width - indent.length).map((part) => indent + part);
  });
  terminal.out(`${(liveOut ? fitted : lines).join('\n')}\n`);
}

/** What changed in the tools of a server, a line each; risky where one that clients know is gone or says something else. */
function compareTools(
  before: FoundServer | undefined,
  after: FoundServer | undefined,
): { readonly lines: readonly string[]; readonly isRisky: boolean } | undefined {
  if (before?.tools === undefined || after?.tools === undefined) return undefined;
  const old = new Map(before.tools.map(({ name, digest }) => [name, digest]));
  const now = new Map(after.tools.map(({ name, digest }) => [name, digest]));
  const added = [...now.keys()].filter((name) => !old.has(name));
  const gone = [...old.keys()].filter((name) => !now.has(name));
  const changed = [...now].filter(([name, digest]) => old.has(name) && old.get(name) !== digest);
  const line = (what: string, names: readonly string[]): string[] =>
    names.length === 0
      ? []
      : [
          `tools ${what}: ${names.slice(0, MAX_NAMED).join(', ')}${names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : ''}`,
        ];
  return {
    lines: [
      ...line('added', added),
      ...line('gone', gone),
      ...line(
        'changed',
        changed.map(([name]) => name),
      ),
    ],
    isRisky: gone.length + changed.length > 0,
  };
}

const MAX_NAMED = 30;
