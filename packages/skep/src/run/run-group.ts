import { splitName } from '@skep/core/catalog/entry-name.ts';
import type { CatalogueGroup } from '@skep/core/catalog/native-group.ts';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { valuesOf } from '@skep/core/settings/define-settings.ts';
import { fromArgv } from '@skep/core/settings/from-argv.ts';
import { fromEnv } from '@skep/core/settings/from-env.ts';
import { mergeSettings } from '@skep/core/settings/merge.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { Ask } from '../cli/ask.ts';
import type { Context } from '../cli/context.ts';
import { mergeEnv } from '../plan/merge-env.ts';
import type { NewWorkload } from '../plan/plan.ts';
import { planRun } from '../plan/plan-run.ts';
import type { RunRequest } from '../plan/planned-run.ts';
import { layer } from '../plan/settings-of-run.ts';
import { createGroup, groupNames, removeGroup } from '../run-config/group-file.ts';
import { runSettings } from '../settings/run-settings.ts';
import { nameOfEntry } from '../settings/workload-name.ts';
import { readStatus } from '../supervisor/state.ts';
import { membersOf } from '../workloads/group-members.ts';
import { messageOf, throwFirst, type Failure } from '../workloads/select.ts';
import { carryOut, surroundingsOf } from './carry-out.ts';

export interface GroupRun {
  /** The group that the servers are put into; made when it is not there. */
  readonly group: string;
  readonly servers: CatalogueGroup['servers'];
  /** `SERVER.KEY=VALUE`, or `SERVER.KEY` for the command's own value. */
  readonly env: readonly string[];
}

/** A server of the group, what its workload is called, and what it is given. */
interface Member {
  readonly server: string;
  readonly name: string;
  readonly env: string[];
}

/**
 * Runs the servers of a catalogue's group (docs/behaviour/run.md#groups-of-a-catalogue): all are planned, and all that is
 * missing is asked for, before the first is made. Those that then cannot be started do not keep the others from running.
 */
export async function runGroup({ group, servers, env }: GroupRun, context: Context): Promise<void> {
  const { places, terminal, signal } = context;
  const planned = await planAll(membersFor(servers, env), context);
  const isNew = !(await groupNames(places)).includes(group);
  if (isNew) await createGroup(places, group);
  const failures: Failure[] = [];
  let done = 0;
  try {
    for (const { plan, ask } of planned) {
      signal.throwIfAborted();
      try {
        await carryOut(intoGroup(plan, group), { ...context, ...(ask && { ask }) });
        done += 1;
      } catch (error) {
        if (signal.aborted || hasCode(error, 'run/cancelled')) throw error;
        failures.push({ name: plan.name, error });
        terminal.err(`${plan.name} was not started: ${printable(messageOf({ name: plan.name, error }))}\n`);
      }
    }
  } finally {
    terminal.err(`Group '${group}': ${done} of ${planned.length} servers started\n`);
    if (isNew && (await membersOf(places, group)).length === 0)
      await removeGroup(places, group, async () => {});
  }
  throwFirst(failures, planned.length);
}

/** Short names where they tell the servers apart. Fails with `usage/invalid-value` for a variable of none of them. */
function membersFor(servers: readonly string[], env: readonly string[]): readonly Member[] {
  const short = (server: string): string => nameOfEntry(splitName(server).name);
  const members = servers.map((server): Member => {
    const isAlone = servers.filter((other) => short(other) === short(server)).length === 1;
    return { server, name: isAlone ? short(server) : nameOfEntry(server), env: [] };
  });
  for (const text of env) {
    const [, whose = '', variable = ''] = /^([^=]+)\.([^=.]+(?:=.*)?)$/s.exec(text) ?? [];
    const member = members.find(({ server, name }) => [server, name].includes(whose));
    if (member) member.env.push(variable);
    else {
      throw new SkepError('usage/invalid-value', {
        message: `--env names no server of the group: "${text.replace(/=.*$/s, '').slice(0, 100)}"`,
        hint: `write SERVER.KEY=VALUE, with one of: ${members.map(({ name }) => name).join(', ')}`,
      });
    }
  }
  return members;
}

interface PlannedMember {
  readonly plan: NewWorkload;
  /** Gives the answers that the person gave before. */
  readonly ask: Ask | undefined;
}

/** Fails with the first server that cannot be run; those after it are told as well. */
async function planAll(members: readonly Member[], context: Context): Promise<readonly PlannedMember[]> {
  const failures: Failure[] = [];
  const plans: NewWorkload[] = [];
  for (const member of members) {
    try {
      plans.push(await planMember(member, context));
    } catch (error) {
      if (context.signal.aborted || !(error instanceof SkepError)) throw error;
      failures.push({ name: member.name, error });
    }
  }
  if (failures.length > 1)
    for (const one of failures) context.terminal.err(`${one.name}: ${printable(messageOf(one))}\n`);
  throwFirst(failures, members.length);
  const planned = plans.map((plan): PlannedMember => ({ plan, ask: askOnce(plan.name, context.ask) }));
  for (const { plan, ask } of planned) await mergeEnv(plan.settings, plan.env, ask);
  return planned;
}

async function planMember({ server, name, env }: Member, context: Context): Promise<NewWorkload> {
  const status = await readStatus(context.places, name);
  if (status !== undefined && status.status !== 'error') {
    throw new SkepError('run/name-taken', {
      message: `workload with name '${name}' already exists`,
      hint: `remove it with skep rm ${name}`,
    });
  }
  const plan = await planRun(requestFor({ server, name, env }, context), surroundingsOf(context));
  // A member that the catalogue itself could not read must never become somebody's image or package.
  if (plan.settings.get('registry_server_name')?.value !== server) {
    throw new SkepError('target/not-found', {
      message: `server "${server.slice(0, 200)}" of the group cannot be run from the catalogue`,
      hint: 'its entry is missing or invalid',
    });
  }
  // What nobody can be asked for is known to be missing now.
  if (!context.ask) await mergeEnv(plan.settings, plan.env, undefined);
  return plan;
}

/** As if the person had run this server alone. */
function requestFor({ server, name, env }: Member, context: Context): RunRequest {
  const argv = ['--name', name, ...env.map((variable) => `--env=${variable}`)];
  const given = fromArgv({ rows: runSettings }, argv).settings;
  const settings = mergeSettings(runSettings, [given, fromEnv(runSettings, context.env)]);
  return { target: server, values: valuesOf(runSettings, settings), settings, args: undefined };
}

/** The group is made after the planning, so no plan names it yet. */
function intoGroup(plan: NewWorkload, group: string): NewWorkload {
  return {
    ...plan,
    settings: new Map([...plan.settings, ...layer('flag', '--group', { group })]),
    configure: async (made) => ({ ...(await plan.configure(made)), group }),
  };
}

function askOnce(name: string, ask: Ask | undefined): Ask | undefined {
  if (!ask) return undefined;
  const answers = new Map<string, string>();
  return async (requirement) => {
    const { description } = requirement;
    const about = description === undefined ? `for ${name}` : `for ${name}: ${description}`;
    const answer = answers.get(requirement.name) ?? (await ask({ ...requirement, description: about }));
    answers.set(requirement.name, answer);
    return answer;
  };
}
