import { editText } from '../clients/edit-text.ts';
import { entryFor } from '../clients/entry.ts';
import type { Client } from '../clients/table.ts';
import { reachableOf } from './reachable.ts';
import type { WorkloadView } from './view.ts';

/** `list --format CLIENT`: what the client's file holds when it holds these workloads and nothing else. */
export async function toClientText(client: Client, views: readonly WorkloadView[]): Promise<string> {
  const taken = new Set<string>();
  const changes = views.map((view) => {
    const workload = reachableOf(view);
    const preferred = client.namesAsRegistry === true ? workload.registryName : undefined;
    const name = preferred === undefined || taken.has(preferred) ? workload.name : preferred;
    taken.add(name);
    return { name, value: entryFor(client, name, workload) };
  });
  const { text } = await editText(client, '', { changes, emptied: undefined });
  if (text !== '' || client.format === 'toml') return text;
  return client.format === 'yaml'
    ? `${client.key}: ${client.isList ? '[]' : '{}'}\n`
    : `{"${client.key}": {}}\n`;
}
