import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { wrapText } from '@skep/core/settings/to-help.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { groupsOfClients, registerClient, unregisterClient } from '../supervisor/registered-clients.ts';
import type { ClientRecord } from '../clients/record.ts';
import { readRecord } from '../clients/record.ts';
import type { Client } from '../clients/table.ts';
import { planUpdate, updateClient, type Update, type Wanted } from '../clients/update-client.ts';
import type { Context } from '../cli/context.ts';
import { printDifference, shortPath } from '../print/difference.ts';
import { reachableOf } from '../workloads/reachable.ts';
import { viewWorkloads } from '../workloads/view.ts';

/** What is to become of one client. */
export interface ClientChange {
  readonly client: Client;
  /** Groups that it gets or loses. */
  readonly register?: readonly string[];
  readonly unregister?: readonly string[] | 'all';
  readonly remember: (record: ClientRecord) => ClientRecord;
}

interface Planned extends ClientChange {
  readonly wanted: Wanted;
  readonly update: Update;
}

export interface ChangeOptions {
  /** Nobody is asked. */
  readonly yes: boolean;
  /** Nothing is written. */
  readonly dryRun: boolean;
}

/**
 * Shows what changes in the files of clients, asks where somebody can be asked, and writes it. One file that is left
 * alone does not keep the others from being written; it is what this fails with in the end.
 */
export async function changeClients(
  changes: readonly ClientChange[],
  { yes, dryRun }: ChangeOptions,
  context: Context,
): Promise<void> {
  const failures: SkepError[] = [];
  const planned: Planned[] = [];
  for (const change of changes) {
    const wanted = await wantedOf(change, context);
    const update = await orFailure(planUpdate(change.client, wanted, context), failures);
    if (update) planned.push({ ...change, wanted, update });
  }
  const written = planned.filter(({ update }) => update.text !== update.file.text);
  for (const { update } of written) printDifference(update, context);
  if (dryRun) return tellFailures(failures, changes.length);
  if (written.length > 0 && !yes && context.confirm) {
    const [first] = written;
    const what =
      first && written.length === 1 ? shortPath(first.update.file.path, context) : `${written.length} files`;
    const agreed = await context.confirm(`Write this to ${what}?`);
    if (!agreed) throw new SkepError('run/cancelled', { hint: 'nothing was changed' });
  }
  for (const one of planned) {
    context.signal.throwIfAborted();
    const update = await orFailure(carryOut(one, context), failures);
    if (update) tell(one, update, context);
  }
  tellFailures(failures, changes.length);
}

async function orFailure<T>(work: Promise<T>, failures: SkepError[]): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (!hasCode(error, 'client/file-left-alone')) throw error;
    failures.push(error);
    return undefined;
  }
}

function tellFailures(failures: readonly SkepError[], among: number): void {
  const [first] = failures;
  if (!first) return;
  if (among === 1) throw first;
  const message = failures.map((one) => one.message).join('; ');
  throw new SkepError(first.code, { message, hint: first.hint });
}

/** All that the client is to have from now on: what runs of its groups, and of the workloads it has by name. */
async function wantedOf(change: ClientChange, context: Context): Promise<Wanted> {
  const { client, register = [], unregister = [], remember } = change;
  const groups = new Set((await groupsOfClients(context.places)).get(client.name));
  for (const group of register) groups.add(group);
  for (const group of unregister === 'all' ? [...groups] : unregister) groups.delete(group);
  const { workloads } = remember(await readRecord(context.places, client.name));
  const views = await viewWorkloads(context);
  const there = views
    .filter((view) => view.status === 'running' && (groups.has(view.group) || workloads.includes(view.name)))
    .map(reachableOf);
  return { there, gone: 'all', remember };
}

async function carryOut(
  { client, wanted, register = [], unregister = [] }: Planned,
  context: Context,
): Promise<Update> {
  const { places } = context;
  const update = await updateClient(client, wanted, context);
  await registerClient(places, client.name, register);
  const all = (await groupsOfClients(places)).get(client.name) ?? [];
  await unregisterClient(places, client.name, unregister === 'all' ? all : unregister);
  return update;
}

function tell({ client, unregister }: Planned, { names, foreign, file }: Update, context: Context): void {
  const { terminal } = context;
  const path = shortPath(file.path, context);
  for (const name of foreign) {
    terminal.err(`Warning: an entry "${name}" in ${path} was not written by Skep and is left alone\n`);
  }
  terminal.out(`${client.name}\n`);
  const nothing = unregister === undefined ? 'gets servers as they start' : 'has no server of Skep now';
  const has = names.length === 0 ? nothing : `has ${names.map(printable).join(', ')}`;
  const told = `${client.title} ${has} (${path})`;
  const lines = terminal.liveErr ? wrapText(told, terminal.width - 2) : [told];
  terminal.err(lines.map((line) => `  ${line}\n`).join(''));
}
