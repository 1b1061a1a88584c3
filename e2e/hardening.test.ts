import { chownSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { PICKY_SERVER } from './fixtures/picky-server.ts';
import { TINY_SERVER } from './fixtures/tiny-server.ts';
import { engine, ensureScriptImage, ensureTinyImage } from './images.ts';
import { component, title } from './require.ts';
import { openUser, type TestUser } from './skep.ts';

// How hard the containers of images are held that expect this or that of their engine.

const engineThere = await component('engine');
/** Users that own nothing on this machine. */
const NOBODYS = /^60[7-9]\d\d$|^61[01]\d\d$/;

describe.skipIf(!engineThere.available)(title('an image on an engine', engineThere), () => {
  let user: TestUser;
  beforeEach(() => {
    user = openUser({ SKEP_RUNTIME: 'docker' });
  });
  afterEach(() => user.end());

  async function run(name: string, lines: readonly string[], ...args: readonly string[]) {
    const image = await ensureScriptImage(`skep-test/picky-${name}:1`, PICKY_SERVER, lines);
    const ran = await user.skep(['run', image, '--name', 'picky', ...args]);
    return { ...ran, uid: /^✓ picky is running \(picky (\d+)\)/m.exec(ran.stderr)?.[1] };
  }

  const config = () =>
    JSON.parse(readFileSync(path.join(user.dir, 'state/skep/runconfigs/picky.json'), 'utf8')) as {
      hardening?: string;
    };
  async function container() {
    const { text } = await engine('GET', '/containers/picky/json');
    return JSON.parse(text) as {
      Id: string;
      Config: { User: string };
      HostConfig: { ReadonlyRootfs: boolean };
    };
  }

  test.each<[what: string, lines: readonly string[], hardening: string, uid: RegExp]>([
    ['that says nobody', [], 'other-user', NOBODYS],
    ['that says root', ['USER root'], 'other-user', NOBODYS],
    ['with a user of its own', ['USER 1000:1000'], 'read-only', /^1000$/],
    ['with a volume that belongs to root', ['VOLUME /var/lib/picky'], 'read-only', /^0$/],
    ['with a file for root alone', ['RUN echo key > /srv-key && chmod 600 /srv-key', 'ENV NEEDS=read:/srv-key'], 'read-only', /^0$/], // prettier-ignore
    ['with its program in the home of root', ['RUN mkdir -p /root/bin && cp /server.mjs /root/bin/server.mjs && chmod 700 /root', 'ENTRYPOINT ["node", "/root/bin/server.mjs"]'], 'read-only', /^0$/], // prettier-ignore
    ['with models in the home of root, missed late', ['RUN mkdir -p /root/.cache/models && echo model > /root/.cache/models/one'], 'read-only', /^0$/], // prettier-ignore
    ['that writes beside its code', ['RUN mkdir /app', 'ENV NEEDS=write:/app/state.json'], 'none', /^0$/],
    ['that writes in the home of its user', ['RUN mkdir -p /home/one && chmod 777 /home/one', 'USER 1000', 'ENV NEEDS=write:/home/one/state'], 'none', /^1000$/], // prettier-ignore
    ['that writes in memory', ['RUN chmod 1777 /tmp', 'ENV NEEDS=write:/tmp/state'], 'other-user', NOBODYS],
  ])('%s is held as hard as it starts', async (_what, lines, hardening, uid) => {
    const ran = await run(_what.replaceAll(/\W+/g, '-'), lines);
    expect(ran.code, ran.stderr).toBe(0);
    expect(ran.uid).toMatch(uid);
    expect(config().hardening).toBe(hardening);
    const { HostConfig, Config } = await container();
    expect(HostConfig.ReadonlyRootfs).toBe(hardening !== 'none');
    expect(/^60|^61/.test(Config.User)).toBe(hardening === 'other-user');
    expect(ran.stderr).toMatch(hardening === 'none' ? /^ +Own Files: +writable, because/m : /^ +Own Files: +read-only/m); // prettier-ignore
  });

  test('of a shell alone is one too', async () => {
    const image = await ensureTinyImage(TINY_SERVER);
    const ran = await user.skep(['run', image, '--name', 'picky']);
    expect(ran.code, ran.stderr).toBe(0);
    expect(config().hardening).toBe('other-user');
  });

  test('that changes owners at first does not start at all, because it has no such right', async () => {
    const ran = await run('chowns', ['RUN mkdir /app', 'ENV NEEDS=chown:/app']);
    expect(ran.code).toBe(1);
    expect(ran.stderr).toMatch(/^ +code: 'EPERM',$/m);
    expect(await engine('GET', '/containers/picky/json')).toMatchObject({ status: 404 });
  });

  test('that is known is started once, also after a crash of the supervisor', async () => {
    const ran = await run('knows', ['RUN mkdir /app', 'ENV NEEDS=write:/app/state.json']);
    expect(ran.stderr).toContain('Warning: picky does not start with its own files read-only');
    const { Id } = await container();
    await user.skep(['stop', 'picky']);
    const again = await user.skep(['start', 'picky']);
    expect(again.stderr).not.toContain('Warning');
    expect((await container()).Id).toBe(Id);
    await user.killSupervisor();
    await user.skep(['list']);
    expect((await container()).Id).toBe(Id);
  });

  test('that has to be read-only and cannot is refused, with the flag', async () => {
    const ran = await run('insists', ['RUN mkdir /app', 'ENV NEEDS=write:/app/state.json'], '--read-only');
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain(
      'if it needs to write /app/state.json in its container, run it with --read-only=false',
    );
    expect(await engine('GET', '/containers/picky/json')).toMatchObject({ status: 404 });
  });

  test('that writes beside its code late fails there, and status names the line that lets it', async () => {
    const ran = await run('late', ['RUN mkdir /app']);
    const url = ran.stdout.trim();
    expect(await note(url)).toContain('EROFS');
    const shown = await user.skep(['status', 'picky']);
    const line = 'skep stop picky && skep start --read-only=false picky';
    expect(shown.stdout).toContain(`to write /app/notes.json in its container – ${line}`);
    await user.skep(['stop', 'picky']);
    await user.skep(['start', '--read-only=false', 'picky']);
    expect(await note(url)).toContain('kept');
    await user.skep(['stop', 'picky']);
    await user.skep(['start', 'picky']);
    expect(await note(url)).toContain('kept');
  });

  test.runIf(process.getuid?.() === 0)('writes what is mounted as the one who owns it', async () => {
    const notes = path.join(user.dir, 'notes');
    mkdirSync(notes);
    chownSync(notes, 1234, 1234);
    const writable = ['ENV NEEDS=write:/notes/new'];
    const ran = await run('mounts', writable, '-v', `${notes}:/notes`);
    expect(ran.uid).toBe('1234');
    expect(readFileSync(path.join(notes, 'new'), 'utf8')).toBe('state');
    await user.skep(['rm', 'picky']);
    // What belongs to root alone is written by root.
    rmSync(path.join(notes, 'new'));
    chownSync(notes, 0, 0);
    const roots = await run('mounts', writable, '-v', `${notes}:/notes`);
    expect(roots.uid).toBe('0');
    expect(config().hardening).toBe('read-only');
  });
});

let calls = 1;
/** What the tool of the server answers, in a session of its own. */
async function note(url: string): Promise<string> {
  const accept = 'application/json, text/event-stream';
  const headers = { 'content-type': 'application/json', accept };
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } };
  const ask = (more: object, session: Record<string, string> = {}) =>
    fetch(url, {
      method: 'POST',
      headers: { ...headers, ...session },
      body: JSON.stringify({ jsonrpc: '2.0', ...more }),
    });
  const greeted = await ask({ id: 0, method: 'initialize', params });
  const session = { 'mcp-session-id': greeted.headers.get('mcp-session-id') ?? '' };
  await greeted.text();
  const answer = await ask({ id: (calls += 1), method: 'tools/call', params: { name: 'note' } }, session);
  return answer.text();
}
