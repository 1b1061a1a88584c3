import type { Terminal } from '@skep/core/command/terminal.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { CLIENTS } from '../clients/table.ts';
import { updateClient, type UpdateDeps, type Wanted } from '../clients/update-client.ts';
import { DEFAULT_GROUP } from '../settings/group-name.ts';
import { clientsOfWorkload } from '../supervisor/registered-clients.ts';
import { reachableOf } from './reachable.ts';
import { viewWorkloads, type ViewDeps } from './view.ts';

type Telling = ViewDeps & UpdateDeps & { readonly terminal: Pick<Terminal, 'err'> };

/**
 * After workloads have moved to `default`: those that run are taken out of the files of `before`, the clients of the
 * group they were in, and written for the clients of `default`. What cannot be written is told.
 */
export async function tellMoved(
  names: readonly string[],
  before: readonly string[],
  deps: Telling,
): Promise<void> {
  const views = (await viewWorkloads(deps)).filter(
    ({ name, status }) => names.includes(name) && status === 'running',
  );
  for (const view of views) {
    const now = await clientsOfWorkload(deps.places, { name: view.name, group: DEFAULT_GROUP });
    for (const client of CLIENTS) {
      const isLost = before.includes(client.name) && !now.has(client.name);
      const isNew = now.has(client.name) && !before.includes(client.name);
      if (!isLost && !isNew) continue;
      const wanted: Wanted = isNew
        ? { there: [reachableOf(view)], gone: [] }
        : { there: [], gone: [view.name] };
      try {
        await updateClient(client, wanted, deps);
      } catch (error) {
        if (!(error instanceof SkepError)) throw error;
        deps.terminal.err(`Warning: ${printable(error.message)}\n`);
      }
    }
  }
}
