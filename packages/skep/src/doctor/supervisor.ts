import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { connect as dial } from 'node:net';
import { unlessHeld, withLock } from '@skep/core/files/lock.ts';
import { lookAtAutostart, type Starter } from '../autostart/autostart.ts';
import { clearAddress, readAddress, supervisorLock, type Address } from '../supervisor/address.ts';
import { connect, type Connection } from '../supervisor/connect.ts';
import { loadAppConfig } from '../config/app-config.ts';
import { readFrontDoor } from '../supervisor/front-state.ts';
import { holderOf } from '../supervisor/port-holder.ts';
import { ok, type Finding, type Inquiry } from './check.ts';
import { broken } from './machine.ts';

/** Whether the process that hosts servers is up, of this version, and answers. */
export async function lookAtSupervisor({ context }: Inquiry): Promise<Finding> {
  const { places, uid, isAlive } = context;
  let found: Connection | undefined;
  try {
    // One that does not greet is told of, and left alone.
    found = await connect({ ...context, end() {} });
  } catch (error) {
    return broken(error);
  }
  if (found !== undefined) return describe(found, context);
  const address = readAddress(places, uid);
  if (address !== undefined && isAlive(address)) {
    const { pid } = address;
    return { verdict: 'broken', text: `process ${pid} does not answer`, remedy: `end it with kill ${pid}` };
  }
  return whatIsLeft(address, context);
}

function describe(
  { socket, process, version }: Connection,
  { program, lacksGroups }: Inquiry['context'],
): Finding {
  socket.destroy();
  const who = `process ${process.pid} of Skep ${version}`;
  if (version !== program.version)
    return { verdict: 'warning', text: `${who} answers, and this is Skep ${program.version}` };
  if (!lacksGroups(process)) return ok(`${who} answers`);
  return { verdict: 'warning', text: `${who} is not in a group that you are in by now` };
}

async function whatIsLeft(address: Address | undefined, context: Inquiry['context']): Promise<Finding> {
  const { places, uid, isAlive, signal } = context;
  if (address?.watcher !== undefined && isAlive(address.watcher))
    return ok('it was killed, and is being started again');
  const sockets = (await readdir(places.supervisorDir).catch(() => [])).filter((one) =>
    one.endsWith('.sock'),
  );
  if (address === undefined && sockets.length === 0) return ok('none is up; it starts with the next server');
  return {
    verdict: 'note',
    text: 'none is up, and an earlier one left its socket or address',
    remedy: 'the next one removes them, or skep doctor --fix',
    fix: async () => {
      const waiting = { waitMs: 0, what: 'the supervisor', signal };
      const done = withLock(supervisorLock(places), waiting, async () => {
        await clearAddress(places, uid);
        return true;
      });
      return (await unlessHeld(done)) === true ? 'removed them' : 'a supervisor has come up, and uses them';
    },
  };
}

/** Whether servers start again after a reboot, where they are meant to. */
export async function lookAtReboots(starter: Starter): Promise<Finding | undefined> {
  const { file, state } = await lookAtAutostart(starter);
  if (file === undefined) return undefined;
  if (state === 'on') return ok(`servers start again, by ${file}`);
  if (state === 'off') return ok('servers are not started again; skep autostart on changes that');
  if (state === 'changed') return { verdict: 'note', text: `${file} is not what Skep wrote` };
  return { verdict: 'warning', text: `${file} starts another Skep or Node, or looks into other places` };
}

/** The one address of all servers: open, or free to be opened by the next supervisor. */
export async function lookAtFrontDoor({ context, signal }: Inquiry): Promise<Finding | undefined> {
  const door = readFrontDoor(context);
  if (door.is === 'open') return ok(`open on port ${door.port}`);
  if (door.is === 'off') return NO_DOOR;
  if (door.is === 'closed') return { verdict: 'warning', text: door.why };
  // What is wrong with the configuration is told by its own check.
  const port = (await loadAppConfig(context.places, context.env).catch(() => undefined))?.frontPort;
  if (port === undefined) return undefined;
  if (port === 0) return NO_DOOR;
  if (!(await isTaken(port, signal))) return ok(`opens on port ${port} with the next server`);
  return { verdict: 'warning', text: `port ${port} is taken by ${await holderOf(port, context)}` };
}

const NO_DOOR: Finding = { verdict: 'note', text: 'there is none: its port is set to 0' };

async function isTaken(port: number, signal: AbortSignal): Promise<boolean> {
  const socket = dial({ port, host: '127.0.0.1' });
  try {
    await once(socket, 'connect', { signal });
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
