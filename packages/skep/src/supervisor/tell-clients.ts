import { CLIENTS, type Client } from '../clients/table.ts';
import { updateClient, type Reachable, type UpdateDeps, type Wanted } from '../clients/update-client.ts';
import { recordedClients } from '../clients/record.ts';
import { findRunConfig } from '../run-config/file.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import { workloadUrl } from '../run-config/workload-url.ts';
import { frontUrl, type FrontDoor } from './front-state.ts';
import { clientsOfWorkload } from './registered-clients.ts';
import { isUnfinished, type StatusRecord } from './state.ts';

/** Keeps the files of connected clients up to date with the workloads that one process hosts. */
export interface ConnectedClients {
  /** A writer of statuses that tells clients too: what runs is written, what ends or starts again is taken away. */
  follow(name: string, record: StatusRecord): StatusRecord;
  /** Writes a workload that runs. Never rejects. */
  there(name: string): Promise<void>;
  /** Takes a workload away. Never rejects. */
  gone(name: string): Promise<void>;
}

interface TellDeps extends UpdateDeps {
  /** The address that clients are to have; undefined while the front door is closed, for it has to last. */
  readonly addressOf: (config: RunConfig) => Promise<string | undefined>;
  /** Tells the log of a workload what could not be written. */
  readonly warn: (name: string, error: unknown, what: string) => Promise<void>;
}

export function connectedClients(deps: TellDeps): ConnectedClients {
  /** Never rejects: whatever a client's file is like, the workload runs. */
  async function update(name: string, wanted: Wanted, clients: Iterable<string>): Promise<void> {
    for (const client of clientsNamed(clients)) {
      try {
        const { foreign } = await updateClient(client, wanted, deps);
        if (foreign.length > 0)
          await deps.warn(name, undefined, `${client.title} has an entry of that name already`);
      } catch (error) {
        await deps.warn(name, error, `the file of ${client.title} was not written`);
      }
    }
  }

  async function there(name: string): Promise<void> {
    const config = await findRunConfig(deps.places, name);
    if (!config) return;
    const clients = await clientsOfWorkload(deps.places, config);
    if (clients.size === 0) return;
    const url = await deps.addressOf(config);
    if (url !== undefined) return update(name, { there: [reachable(config, url)], gone: [] }, clients);
    await deps.warn(name, undefined, 'connected clients were not told: the front door is closed');
  }

  async function gone(name: string): Promise<void> {
    const clients = recordedClients(deps.places);
    if (clients.length > 0) await update(name, { there: [], gone: [name] }, clients);
  }

  /** What cannot even be asked (a damaged group) is told like what cannot be written. */
  const told = (name: string, work: Promise<void>): Promise<void> =>
    work.catch((error: unknown) => deps.warn(name, error, 'connected clients were not told'));

  return {
    there: (name) => told(name, there(name)),
    gone: (name) => told(name, gone(name)),
    follow(name, record) {
      let isThere = false;
      return {
        async set(status, context) {
          await record.set(status, context);
          if (status === 'running') await told(name, there(name));
          // At first a start is no restart: a supervisor takes up what still runs.
          const hasEnded = status === 'stopping' || !isUnfinished(status);
          if (hasEnded || (isThere && status === 'starting')) await told(name, gone(name));
          isThere = status === 'running' || (isThere && status === 'unhealthy');
        },
      };
    },
  };
}

/** Behind the front door where there is one; undefined while another program has its port. */
export function addressFor(config: RunConfig, door: FrontDoor | undefined): string | undefined {
  if (door?.is === 'open') return frontUrl(door.port, config.name, workloadUrl(config));
  return door?.is === 'closed' ? undefined : workloadUrl(config);
}

const clientsNamed = (names: Iterable<string>): readonly Client[] => {
  const wanted = new Set(names);
  return CLIENTS.filter(({ name }) => wanted.has(name));
};

function reachable(config: RunConfig, url: string): Reachable {
  const mode = config.proxy_mode === 'sse' ? 'sse' : 'streamable-http';
  const registryName = config.registry_server_name;
  return { name: config.name, registryName, mode, url, otherUrls: [workloadUrl(config)] };
}
