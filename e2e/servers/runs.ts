import { spawn } from 'node:child_process';
import { chownSync, mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { repoRoot } from '../require.ts';
import { ended, printed, type TestUser } from '../skep.ts';
import type { PublicServer } from './table.ts';
import type { World } from './world.ts';

/** What the official client saw of a server. */
export interface Session {
  readonly server: { readonly name: string; readonly version: string };
  readonly tools: readonly string[];
  readonly answer?: { readonly isError?: boolean };
}

export interface Profile {
  readonly read: readonly string[];
  readonly write: readonly string[];
  readonly network: {
    readonly outbound: { readonly allow_host: readonly string[]; readonly allow_port: readonly number[] };
  };
}

export interface Learned {
  readonly profile: Profile;
  readonly file: string;
  /** What was said of it, in the words of the program. */
  readonly told: string;
  /** While it was watched, and under the profile that was proposed then. */
  readonly first: Session;
  readonly again: Session;
}

/** A command as root starts it in other surroundings. */
type Through = (command: readonly string[]) => readonly string[];

const SESSION = path.join(repoRoot, 'e2e/fixtures/mcp-session.ts');
/** Where a server finds the certificate of what stands for its service, and what tells it so. */
export const TRUSTED = '/trusted.pem';
const TRUST = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE'];

/**
 * Has a server fetched, watches it on the machine of the small internet while a client uses it, and has the same client use it
 * there under the profile that was proposed, and nothing else.
 */
export async function learnAndRun(
  server: PublicServer,
  { user, uid }: { readonly user: TestUser; readonly uid: number },
  { internet, directories }: World,
): Promise<Learned> {
  const { name, target } = server;
  const through: Through = (command) => internet.through(command);
  const cwd = path.join(user.dir, 'work');
  mkdirSync(cwd);
  chownSync(cwd, uid, uid);
  // From here on the package is there, for as long as somebody has it.
  const fetched = await user.skep(['run', target, '--name', 'fetched', '--no-check']);
  if (fetched.code !== 0) throw new Error(fetched.stderr);
  await user.skep(['stop', 'fetched']);
  const use = async (words: readonly string[]): Promise<{ session: Session; told: string }> => {
    const child = user.start(['run', ...words], { through, cwd });
    const result = ended(child);
    const [url = ''] = /http:\/\/127\.0\.0\.1:\d+\S*/.exec(await printed(child, 'Press Ctrl-C')) ?? [];
    const session = await sessionAt(url, server, through);
    child.kill('SIGINT');
    const { code, stderr } = await result;
    if (code !== 0) throw new Error(stderr);
    return { session, told: stderr };
  };
  const mounts = Object.entries(server.mounts ?? {}).map(([what, at]) => `${directories[what]}:${at}`);
  if (server.bodies !== undefined) mounts.push(`${internet.certificate}:${TRUSTED}:ro`);
  const volumes = mounts.flatMap((mount) => ['-v', mount]);
  const variables = variablesOf(server);
  const args = server.args === undefined ? [] : ['--', ...server.args];
  const { session, told } = await use([target, '--learn', '--name', name, ...variables, ...volumes, ...args]);
  const [, line = ''] = /^skep run (.*)$/m.exec(told) ?? [];
  const file = path.join(cwd, `${name}.profile.json`);
  const words = line.split(' ').map((word) => word.replaceAll("'", ''));
  const { session: again } = await use(['--foreground', ...variables, ...words]);
  const profile = JSON.parse(readFileSync(file, 'utf8')) as Profile;
  return { profile, file, told, first: session, again };
}

/** What it is told on every runtime. */
export function variablesOf({ env = {}, bodies }: PublicServer): readonly string[] {
  const trust = bodies === undefined ? [] : TRUST.map((key) => [key, TRUSTED] as const);
  return [...Object.entries(env), ...trust].flatMap(([key, value]) => ['-e', `${key}=${value}`]);
}

/** Handshake, list of tools and the one call, by a client in a process of its own. */
export async function sessionAt(
  url: string,
  { call }: Pick<PublicServer, 'call'>,
  through: Through = (command) => command,
): Promise<Session> {
  const called = call === undefined ? [] : [JSON.stringify({ name: call.name, arguments: call.arguments })];
  const [file = '', ...args] = through([process.execPath, SESSION, url, ...called]);
  const { code, stdout, stderr } = await ended(spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'] }));
  if (code !== 0) throw new Error(`the session failed: ${stderr}`);
  return JSON.parse(stdout) as Session;
}
