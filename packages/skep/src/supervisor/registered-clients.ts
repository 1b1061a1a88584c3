import type { Places } from '@skep/core/files/places.ts';
import { groupNames, readGroup, updateGroup } from '../run-config/group-file.ts';
import { readRecord, recordedClients } from '../clients/record.ts';

/** The clients that read what the workloads of a group are. */
async function clientsOfGroup(places: Places, group: string): Promise<readonly string[]> {
  return (await readGroup(places, group)).registered_clients;
}

/** The groups of each client that has one. */
export async function groupsOfClients(places: Places): Promise<ReadonlyMap<string, readonly string[]>> {
  const groups = new Map<string, string[]>();
  for (const group of await groupNames(places)) {
    for (const client of await clientsOfGroup(places, group)) {
      groups.set(client, [...(groups.get(client) ?? []), group]);
    }
  }
  return groups;
}

/** The clients that are to have a workload: those of its group, and those that were connected to it by name. */
export async function clientsOfWorkload(
  places: Places,
  { name, group }: { readonly name: string; readonly group: string },
): Promise<ReadonlySet<string>> {
  const clients = new Set(await clientsOfGroup(places, group));
  for (const client of recordedClients(places)) {
    if ((await readRecord(places, client)).workloads.includes(name)) clients.add(client);
  }
  return clients;
}

/** Fails with `group/not-found`. */
export async function registerClient(
  places: Places,
  client: string,
  groups: readonly string[],
): Promise<void> {
  for (const name of groups) {
    const { registered_clients } = await readGroup(places, name);
    if (registered_clients.includes(client)) continue;
    await updateGroup(places, name, (group) => ({
      ...group,
      registered_clients: [...new Set([...group.registered_clients, client])].toSorted(),
    }));
  }
}

export async function unregisterClient(
  places: Places,
  client: string,
  groups: readonly string[],
): Promise<void> {
  for (const name of groups) {
    if (!(await clientsOfGroup(places, name)).includes(client)) continue;
    await updateGroup(places, name, (group) => ({
      ...group,
      registered_clients: group.registered_clients.filter((one) => one !== client),
    }));
  }
}
