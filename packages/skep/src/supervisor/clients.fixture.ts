import type { UpdateDeps } from '../clients/update-client.ts';
import { readFrontDoor, type Looking } from './front-state.ts';
import { addressFor, connectedClients, type ConnectedClients } from './tell-clients.ts';

/** The files of clients as a supervisor under test keeps them; a front door is open where a file says so. */
export function clientsUnderTest(deps: UpdateDeps & Looking): ConnectedClients {
  return connectedClients({
    ...deps,
    addressOf: async (config) => addressFor(config, readFrontDoor(deps)),
    warn: async () => {},
  });
}
