import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import type { Context } from '../cli/context.ts';
import { openRuntime } from '../cli/open-runtime.ts';
import { tellStays } from '../run/tell-start.ts';
import { savedNames } from '../run-config/file.ts';
import { checkWorkloadName } from '../settings/workload-name.ts';
import { SupervisorClient } from '../supervisor/client.ts';
import { dataText, keptNames, readKept, sharersOf, type KeptAt } from '../supervisor/kept-data.ts';
import { ownerOf } from '../supervisor/owner.ts';
import { knownNames } from '../workloads/name-lock.ts';
import { removeLeftovers } from './remove-leftovers.ts';
import {
  checkSelection,
  eachOf,
  onlyWaiting,
  selectedNames,
  selectionSettings,
} from '../workloads/select.ts';

export const rm = defineCommand({
  usage: 'skep rm [flags] [NAME...]',
  summary: 'Remove servers and everything made for them',
  description: [
    'Containers, images built by Skep, fetched packages, logs and saved settings go. The data that a server keeps stays for the next run of its name, and is named; so does its port. --data removes both as well, and on a terminal you are asked about data. Removing what is not there is no error. On a terminal, --all, --group and --label ask first.',
  ],
  positionals: [{ name: 'NAME', variadic: true }],
  settings: [
    ...selectionSettings,
    ...settingsOf({ group: 'Selection' }, [
      flag('bool', 'data', 'Remove the data of the servers too, and forget their ports', { default: false }),
      flag('bool', 'yes', 'Ask nothing; without --data all data stays', { short: 'y', default: false }),
    ]),
    ...commonSettings,
  ],
  async run({ values, positionals }, context) {
    const { places, signal, terminal, confirm } = context;
    const selection = await checkSelection(positionals, values, { command: 'rm', places });
    const { all, where } = selection;
    const names = selection.names.map(checkWorkloadName);
    const known = await knownNames(places);
    const kept = await keptNames(places);
    // What was kept of workloads that are gone goes only with its data.
    const everything = values.data ? [...new Set([...known, ...kept])] : known;
    const chosen = all ? everything : await selectedNames({ ...selection, names }, context);
    if (names.length === 0 && chosen.length > 0 && !values.yes && confirm) {
      const what = values.data ? ', with all of their data' : '';
      const agreed = await confirm(`Remove ${chosen.join(', ')}${what}?`);
      if (!agreed) throw cancelled();
    }
    const data = values.data || (!values.yes && (await wantsDataGone(chosen, context)));
    for (const name of chosen) {
      if (!known.includes(name) && !kept.includes(name))
        terminal.err(`Warning: workload "${name}" not found\n`);
    }
    // What is not there needs no supervisor; what another command just makes is saved, but not known yet.
    const saved = new Set([...known, ...kept, ...(await savedNames(places))]);
    const there = chosen.filter((name) => saved.has(name));
    const shared = data ? await sharedBy(there, context) : [];
    const client = new SupervisorClient(context);
    const remove = async (name: string): Promise<void> => {
      const stays = await client.remove(name, { signal, data });
      if (data || known.includes(name) || stays.length === 0) terminal.out(`${name}\n`);
      tellStays(name, stays, terminal);
    };
    await onlyWaiting(eachOf(there, remove));
    for (const { name, at } of shared) tellShared(await sharersOf(places, name, at), terminal);
    if (!data && terminal.liveErr && there.some((name) => known.includes(name)))
      terminal.err('The next run of the same name gets the same address; rm --data forgets it\n');
    if (chosen.length === 0 && !all) terminal.out(`No workloads found${where}\n`);
    if (!all) return;
    if (chosen.length === 0) terminal.out('No running workloads to delete\n');
    await removeLeftovers(context, { data });
  },
});

/** Asks what becomes of data, where there is any and somebody can be asked. Fails with `run/cancelled`. */
async function wantsDataGone(names: readonly string[], context: Context): Promise<boolean> {
  const { ask, places } = context;
  if (!ask) return false;
  const texts: string[] = [];
  for (const name of names) {
    if (await holdsData(name, context)) texts.push(`${name}: ${(await dataText(places, name)) ?? ''}`);
  }
  if (texts.length === 0) return false;
  const answer = await ask({
    name: 'Data',
    description: `what becomes of ${texts.join('; ')}?`,
    required: true,
    secret: false,
    choices: ['keep', 'remove', 'cancel'],
  }).catch((error: unknown) => {
    throw hasCode(error, 'run/cancelled') ? cancelled() : error;
  });
  if (answer === 'cancel') throw cancelled();
  return answer === 'remove';
}

/** What cannot be told counts as data. */
async function holdsData(name: string, context: Context): Promise<boolean> {
  const { places, signal } = context;
  for (const { runtime: reference, volumes } of await readKept(places, name)) {
    try {
      const runtime = await openRuntime(context, { reference, signal });
      if (await runtime.holdsData(name, ownerOf(places.stateDir), volumes)) return true;
    } catch (error) {
      if (signal.aborted) throw error;
      return true;
    }
  }
  return false;
}

/** What these share with others, a record for each volume. */
async function sharedBy(names: readonly string[], { places }: Context) {
  const shared = new Map<string, { readonly name: string; readonly at: KeptAt }>();
  for (const name of names)
    for (const one of await readKept(places, name))
      for (const volume of one.volumes ?? [])
        shared.set(`${one.runtime?.id ?? ''} ${volume}`, { name, at: { ...one, volumes: [volume] } });
  return [...shared.values()];
}

/** Names the volumes that stay because others have them, and how they go as well. */
function tellShared(
  sharers: ReadonlyMap<string, readonly string[]>,
  terminal: Pick<Context['terminal'], 'err'>,
): void {
  for (const [volume, names] of sharers) {
    if (names.length === 0) continue;
    const text = `The volume ${volume} stays, because ${names.join(', ')} may need it (skep rm --data ${names.join(' ')})`;
    terminal.err(`${printable(text)}\n`);
  }
}

const cancelled = (): SkepError => new SkepError('run/cancelled', { hint: 'nothing was removed' });
