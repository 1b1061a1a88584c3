import { stat } from 'node:fs/promises';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { ifThere } from '@skep/core/files/errno.ts';
import { suggestion } from '@skep/core/settings/did-you-mean.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { CLIENT_NAMES, CLIENTS, fileOf, signOf, type Client, type Desk } from '../clients/table.ts';

/** The client of that name. Fails with `client/unknown`. */
export function clientNamed(name: string): Client {
  const found = CLIENTS.find((one) => one.name === name);
  if (found) return found;
  throw new SkepError('client/unknown', {
    message: `invalid client type: ${printable(name.slice(0, 100))} (valid types: ${CLIENT_NAMES.join(', ')})`,
    hint: suggestion(name.slice(0, 100), CLIENT_NAMES, 'see the clients with skep client status'),
  });
}

/** True when the client, or its file, is on this machine. */
export async function isInstalled(client: Client, desk: Desk): Promise<boolean> {
  for (const path of [signOf(client, desk), fileOf(client, desk)]) {
    // What cannot be looked at is not for Skep to write either.
    const found = await ifThere(stat(path), 'ENOTDIR', 'EACCES', 'EPERM', 'ELOOP');
    if (found) return true;
  }
  return false;
}

/** All clients that are on this machine. Fails with `client/not-installed` where none is. */
export async function installedClients(desk: Desk): Promise<readonly Client[]> {
  const installed: Client[] = [];
  for (const client of CLIENTS) if (await isInstalled(client, desk)) installed.push(client);
  if (installed.length > 0) return installed;
  throw new SkepError('client/not-installed', { message: 'no MCP client that Skep knows is installed' });
}

/** Fails with `client/not-installed`. */
export async function requireInstalled(client: Client, desk: Desk): Promise<void> {
  if (await isInstalled(client, desk)) return;
  throw new SkepError('client/not-installed', {
    message: `${client.title} is not installed: "${signOf(client, desk)}" is not there`,
  });
}
