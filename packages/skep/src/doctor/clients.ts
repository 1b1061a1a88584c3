import { SkepError } from '@skep/core/errors/skep-error.ts';
import { recordedClients } from '../clients/record.ts';
import { CLIENTS } from '../clients/table.ts';
import { planUpdate } from '../clients/update-client.ts';
import { groupsOfClients } from '../supervisor/registered-clients.ts';
import { ok, someOf, type Finding, type Inquiry } from './check.ts';

/** Whether the files of connected clients can be kept up to date. Those of others are nobody's business. */
export async function lookAtClients({ context }: Inquiry): Promise<Finding | undefined> {
  const { places } = context;
  const connected = [...recordedClients(places), ...(await groupsOfClients(places)).keys()];
  const clients = CLIENTS.filter(({ name }) => connected.includes(name));
  if (clients.length === 0) return undefined;
  const faults: string[] = [];
  for (const client of clients) {
    try {
      await planUpdate(client, { there: [], gone: [] }, context);
    } catch (error) {
      if (!(error instanceof SkepError)) throw error;
      faults.push(error.message);
    }
  }
  if (faults.length > 0) return { verdict: 'warning', text: faults.join('; ') };
  return ok(`${someOf(clients.map(({ title }) => title))} can be kept up to date`);
}
