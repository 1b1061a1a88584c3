import type { Lock } from '@skep/core/files/lock.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { Context } from '../cli/context.ts';
import { SupervisorClient } from '../supervisor/client.ts';
import { beginRuntime } from '../cli/open-runtime.ts';
import { limitsOf } from '../permissions/limits.ts';
import { mountSources } from '../permissions/mounts.ts';
import { profileMounts, profileVolumes } from '../permissions/profile.ts';
import { mergeEnv } from '../plan/merge-env.ts';
import type { NewWorkload, Plan, Preparation, SavedWorkload, Surroundings } from '../plan/plan.ts';
import { wantedPort } from '../plan/settings-of-run.ts';
import { openProgress, type Progress } from '../print/progress.ts';
import { deleteRunConfig, loadRunConfig, promisedPorts, saveRunConfig } from '../run-config/file.ts';
import { joiningGroup } from '../run-config/group-file.ts';
import { keptPorts } from '../run-config/kept-ports.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import { DEFAULT_GROUP } from '../settings/group-name.ts';
import { planPort } from '../runtime/free-port.ts';
import type { Prepared, Runtime } from '../runtime/runtime.ts';
import { dataText, keeperOf, keepsData, readKeeper } from '../supervisor/kept-data.ts';
import { checkCreate } from '../supervisor/policy.ts';
import { isImageUsed } from '../supervisor/remove-workload.ts';
import { holdPreparing } from '../workloads/name-lock.ts';
import { claimName } from './claim-name.ts';
import { launchSaved } from './launch-saved.ts';
import { makeAhead } from './make-ahead.ts';
import { forgetUnused, storeOwnSecrets, type Stored } from './own-secrets.ts';
import type { SignInWork } from './sign-in-at-start.ts';
import { startEvents } from './tell-start.ts';

/** What carrying a plan out stands on, and how what it has made so far is undone. */
interface Work {
  readonly context: Context;
  readonly client: SupervisorClient;
  readonly progress: Progress;
  undo: readonly (() => Promise<void>)[];
}

/**
 * Makes what a plan says: claims the name and port, asks for what is missing, prepares, saves, launches. The only place
 * where a run makes anything. When a step fails, what the steps before it made is undone, the last first, and nothing
 * that was there before, or is another's, is touched.
 */
export async function carryOut(plan: Plan, context: Context, progress = progressOf(context)): Promise<void> {
  const client = new SupervisorClient(context);
  const work: Work = { context, client, progress, undo: [] };
  try {
    // Nothing is wrong with the plan, and a supervisor takes its time to start.
    if (!plan.foreground && !context.inside) client.wake(context.signal);
    await (plan.is === 'new' ? carryOutNew(plan, work) : carryOutSaved(plan, work));
  } finally {
    progress.end();
    client.close();
  }
}

async function carryOutNew(plan: NewWorkload, work: Work): Promise<void> {
  const { name, rename, runtime, foreground, learning } = plan;
  const { context, progress } = work;
  const claimed = await claimName(name, runtime, context, {
    rename,
    group: groupOf(plan),
    ...(foreground && { again: plan.wanted }),
  });
  await holding(claimed, name, work, async () => {
    const [kept, keeper] = [await dataText(context.places, name), await readKeeper(context.places, name)];
    const { config, secrets } = await make(plan, work);
    // What is said stays, and the line of the progress does not.
    progress.end();
    await tellLimits(config, { runtime, learns: learning !== undefined }, context);
    if (kept !== undefined && keepsData(config)) {
      const isOther = keeper !== undefined && keeper !== keeperOf(config);
      context.terminal.err(
        `${printable(isOther ? foreignData(name, kept, keeper) : `${name} finds what it kept in ${kept}`)}\n`,
      );
    }
    // From here on whoever launches it removes all of it, where it cannot be used.
    work.undo = [];
    const movable = (wantedPort(plan.settings).wanted ?? 0) === 0;
    if (context.inside) await context.inside.launch(config, { runtime, movable, secrets });
    else
      await launchSaved(config, {
        ...work,
        runtime,
        foreground,
        movable,
        secrets,
        ...(learning && { learning }),
      });
  });
}

/** Anybody may publish a server under a short name, and it would read what another of that name has kept. */
function foreignData(name: string, kept: string, keeper: string): string {
  return `Warning: ${name} finds what another server, ${keeper}, kept in ${kept}; skep rm --data ${name} removes it`;
}

/** Where what is planned will be. */
function groupOf({ settings }: NewWorkload): string {
  const group = settings.get('group')?.value;
  return typeof group === 'string' ? group : DEFAULT_GROUP;
}

/** What a command of this context plans with; what is new runs on the kind of runtime that the person named. */
export function surroundingsOf(context: Context, kind?: string): Surroundings {
  const { signal, woken } = context;
  const named = kind === undefined ? undefined : { kind };
  return {
    ...context,
    connect: (reference = named) => beginRuntime(context, { reference, signal }),
    ...(woken && { makeAhead: (runtime: Runtime) => makeAhead(runtime, context) }),
  };
}

/** Says in one line each what the person might take for granted about a workload and is not so. */
async function tellLimits(
  config: RunConfig,
  { runtime, learns }: { readonly runtime: Runtime; readonly learns: boolean },
  context: Context,
): Promise<void> {
  const { name, permission_profile: profile, sandbox_user: user } = config;
  const mounts = profileMounts(profile, '/');
  const volumes = profileVolumes(profile);
  const wanted = {
    name,
    mounts,
    volumes,
    limits: limitsOf(config),
    learns,
    readOnly: config.read_only ?? false,
  };
  const cautions = await runtime.cautions({ ...wanted, ...(user === undefined ? {} : { user }) });
  for (const limit of cautions) {
    context.terminal.err(`Warning: ${printable(`${name}: ${limit}`)}\n`);
  }
}

/** A prepared workload, saved with where its mounts lead to on this machine today. */
async function make(plan: NewWorkload, work: Work): Promise<Omit<Stored, 'references'>> {
  const { context } = work;
  const { places, random, ask } = context;
  await checkCreate(context.policy, plan.wanted);
  const wanted = { host: plan.host, ...wantedPort(plan.settings) };
  const kept = await keptPorts(places);
  const had = kept.get(plan.name);
  const promised = (): ReturnType<typeof promisedPorts> => promisedPorts(places);
  const choosePort = await planPort({ ...wanted, promised, had, spared: new Set(kept.values()), random });
  const merged = await mergeEnv(plan.settings, plan.env, ask);
  for (const warning of plan.warnings) context.terminal.err(warning);
  const prepared = await prepare(plan, work);
  const port = await choosePort();
  if (had !== undefined && port !== had && (wanted.wanted ?? 0) === 0)
    context.terminal.err(movedPort(plan.name, had, port));
  const signedIn = await signIn(plan, { ...work, env: merged.env });
  if (signedIn) work.undo = [...work.undo, signedIn.undo];
  const configured = await plan.configure({
    port,
    merged,
    prepared,
    ...(signedIn && { signedIn: signedIn.auth }),
  });
  await checkCreate(context.policy, configured);
  const { config, secrets, references } = await storeOwnSecrets(configured, context);
  if (references.length > 0) work.undo = [...work.undo, () => forgetUnused(plan.name, references, context)];
  const mount_sources = await mountSources(profileMounts(config.permission_profile, '/'));
  await joiningGroup(places, config.group, () => saveRunConfig(places, { ...config, mount_sources }));
  work.undo = [...work.undo, () => deleteRunConfig(places, plan.name)];
  return { config, secrets: { ...plan.secrets, ...secrets } };
}

/** Nothing of it is loaded for servers that run here. */
async function signIn({ name, signIn: how }: NewWorkload, work: SignInWork) {
  return how && (await import('./sign-in-at-start.ts')).signInAtStart(name, how, work);
}

function movedPort(name: string, had: number, port: number): string {
  return `Warning: port ${had}, which ${name} had before, is taken; the port of its own is ${port} now\n`;
}

async function carryOutSaved(plan: SavedWorkload, work: Work): Promise<void> {
  const { context, client, progress } = work;
  await renew(plan, work);
  if (plan.foreground) {
    const { hostHere } = await import('./host-here.ts');
    return hostHere(await loadRunConfig(context.places, plan.name), context, plan);
  }
  await client.start(plan.name, {
    secrets: plan.secrets,
    signal: context.signal,
    tell: startEvents(progress, context.terminal),
  });
}

/** Prepares again what is missing; the saved configuration then says what it is called now. */
async function renew({ name, missing, changes }: SavedWorkload, work: Work): Promise<void> {
  const { places, terminal, policy } = work.context;
  if (!missing) return Object.keys(changes).length === 0 ? undefined : change(name, changes, places);
  await holding(await holdPreparing(work.context), name, work, async () => {
    const before = await loadRunConfig(places, name);
    // What may not start is fetched for nothing; its host says why.
    if ((await policy?.mayStart(before)) !== undefined) return;
    const { reference: image, ours: image_is_ours, version } = await prepare({ name, ...missing }, work);
    if (image !== before.image && missing.runtime.keepsFiles) terminal.err(keptFiles(name));
    await change(
      name,
      { ...changes, image, image_is_ours, ...(version !== undefined && { package_version: version }) },
      places,
    );
    work.undo = [];
  });
}

/** Read now: it may have been removed while its package was prepared. */
async function change(name: string, changes: Partial<RunConfig>, places: Context['places']): Promise<void> {
  await saveRunConfig(places, { ...(await loadRunConfig(places, name)), ...changes });
}

/** Code and data cannot be told apart in what a server wrote beside its code, so the person decides. */
function keptFiles(name: string): string {
  return `Warning: ${name} has another version now, and still what the earlier one wrote for itself; to begin without that, remove it with skep rm ${name} and run it again\n`;
}

interface Preparing {
  readonly name: string;
  readonly runtime: Runtime;
  readonly preparation: Preparation;
}

async function prepare({ name, runtime, preparation }: Preparing, work: Work): Promise<Prepared> {
  const { progress: report, context } = work;
  const prepared = await runtime.prepare({ ...preparation, report, signal: context.signal });
  if (prepared.doubt !== undefined) context.terminal.err(`Warning: ${printable(prepared.doubt)}\n`);
  const discard = async (): Promise<void> => {
    if (await isImageUsed(prepared.reference, name, context.places)) return;
    await runtime.discard(prepared.reference);
  };
  if (prepared.ours) work.undo = [...work.undo, discard];
  return prepared;
}

/** Undoes what was made before the lock is let go, where the work fails. */
async function holding(lock: Lock, name: string, work: Work, action: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch (error) {
    work.progress.end();
    for (const step of work.undo.toReversed()) await step().catch(tellLeft(name, work.context));
    throw error;
  } finally {
    lock.release();
  }
}

/** What cannot be undone is told: what the person must hear is why the run failed. */
function tellLeft(name: string, { terminal }: Context): (error: unknown) => void {
  return (error) => {
    const reason = error instanceof SkepError ? error.message : 'internal error';
    terminal.err(`Warning: not all that was made for ${name} is removed (${printable(reason)})\n`);
  };
}

/** Inside a supervisor a step is told before its work begins, and takes time: the command that asked does it itself. */
function progressOf({ inside, terminal }: Context): Progress {
  return inside ? { step: inside.handOver, detail() {}, end() {} } : openProgress(terminal);
}
