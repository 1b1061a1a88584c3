import { fetchAll } from '@skep/registry/sources/scripted-client.fixture.ts';
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { pipeline, Readable } from 'node:stream';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gitSource, type GitSourceOptions } from '@skep/registry/sources/git/git-source.ts';
import type { GitSurroundings } from '@skep/registry/sources/git/session.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { gitMissing, startGitServer, type GitServer } from './fixtures/git-server.ts';

const missing = gitMissing();
const title = missing === '' ? 'git source' : `git source [skipped: ${missing}]`;
const idle = (): AbortSignal => new AbortController().signal;

describe.skipIf(missing !== '')(title, () => {
  let server: GitServer;
  let temp: string;
  let first: string;
  let second: string;

  beforeAll(async () => {
    server = await startGitServer();
    first = await server.commit('first', { 'registry.json': '{"v":1}', 'data/more.json': '{"more":true}' });
    await server.git('tag', 'v1.0.0');
    await server.git('tag', '-a', '-m', 'annotated', 'v1.0.0-annotated');
    await server.git('branch', 'release/1.x');
    second = await server.commit('second', { 'registry.json': '{"v":2}' });
    await symlink('/etc/passwd', path.join(server.folder, 'work', 'link.json'));
    await server.commit('third', { 'big.bin': randomBytes(3_000_000), 'registry.json': '{"v":3}' });
  });
  afterAll(() => server.close());

  beforeEach(async () => {
    temp = await mkdtemp(path.join(tmpdir(), 'skep-git-test-'));
    server.requests.length = 0;
  });
  afterEach(async () => {
    server.credentials = undefined;
    server.intercept = undefined;
    expect((await readdir(temp)).filter((name) => name.startsWith('skep-git-'))).toEqual([]);
    await rm(temp, { recursive: true });
  });

  function source(options: Partial<GitSourceOptions> = {}, surroundings: Partial<GitSurroundings> = {}) {
    return gitSource(
      { repository: server.url, ...options },
      {
        env: { PATH: process.env['PATH'] },
        tempDir: temp,
        clock: systemClock,
        allowPrivate: true,
        ...surroundings,
      },
    );
  }

  async function text(options: Partial<GitSourceOptions>): Promise<string> {
    return Buffer.from((await fetchAll(source(options), idle())).bytes).toString('utf8');
  }

  test.each<[string, () => Partial<GitSourceOptions>, string]>([
    ['the default branch when nothing is named', () => ({}), '{"v":3}'],
    ['a branch', () => ({ branch: 'release/1.x' }), '{"v":1}'],
    ['a tag', () => ({ tag: 'v1.0.0' }), '{"v":1}'],
    ['an annotated tag', () => ({ tag: 'v1.0.0-annotated' }), '{"v":1}'],
    ['a commit that no branch points at', () => ({ commit: second }), '{"v":2}'],
    ['a commit in capital letters', () => ({ commit: first.toUpperCase() }), '{"v":1}'],
    ['a path inside the repository', () => ({ path: '/data/more.json' }), '{"more":true}'],
  ])('reads %s', async (_what, options, expected) => {
    expect(await text(options())).toBe(expected);
  });

  test('refuses an abbreviated commit with the command that prints the whole one, which is then read', async () => {
    const short = second.slice(0, 7);
    const command = `git rev-parse ${short}`;
    expect(() => source({ commit: short })).toThrow(
      `is abbreviated; give all 40 digits, which "${command}" prints`,
    );
    const [, ...args] = command.split(' ');
    expect(await text({ commit: await server.git(...args) })).toBe('{"v":2}');
    expect(server.requests).not.toEqual([]);
  });

  test('the hash is that of the file', async () => {
    const { bytes, hash } = await fetchAll(source(), idle());
    expect(hash).toBe(createHash('sha256').update(bytes).digest('hex'));
  });

  test('fetches one file and no history: the large file beside it never travels', async () => {
    const { bytes } = await fetchAll(source({}, { maxBytes: 100_000 }), idle());
    expect(Buffer.from(bytes).toString()).toBe('{"v":3}');
  });

  test('an unchanged branch costs one ls-remote, a moved one is read again', async () => {
    await server.git('checkout', '--quiet', '-b', 'moving');
    await server.commit('a', { 'registry.json': '{"m":1}' });
    const moving = source({ branch: 'moving' });
    const { hash } = await fetchAll(moving, idle());
    server.requests.length = 0;
    expect(await moving.fetch(idle(), hash)).toBeUndefined();
    expect(server.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'GET /catalog.git/info/refs?service=git-upload-pack',
      'POST /catalog.git/git-upload-pack',
    ]);
    // The caller holds something else, perhaps because it failed to store what it got: it is given everything again.
    expect(Buffer.from((await moving.fetch(idle(), 'other'))?.bytes ?? []).toString()).toBe('{"m":1}');
    await server.commit('b', { 'registry.json': '{"m":2}' });
    const changed = await moving.fetch(idle(), hash);
    expect(Buffer.from(changed?.bytes ?? []).toString()).toBe('{"m":2}');
    await server.git('checkout', '--quiet', 'main');
  });

  test('an unchanged commit costs no request', async () => {
    const pinned = source({ commit: first });
    const { hash } = await fetchAll(pinned, idle());
    server.requests.length = 0;
    expect(await pinned.fetch(idle(), hash)).toBeUndefined();
    expect(server.requests).toEqual([]);
  });

  test('a server that gives out no commit by its id is asked for its branches', async () => {
    const git = (...args: string[]) =>
      execFileSync('git', ['-C', path.join(server.folder, 'catalog.git'), ...args]);
    git('config', 'uploadpack.allowAnySHA1InWant', 'false');
    // Protocol version 2 admits any object, so this server speaks the first one only.
    server.intercept = (request) => {
      delete request.headers['git-protocol'];
      return false;
    };
    expect(await text({ commit: second })).toBe('{"v":2}');
    expect(await text({ branch: 'release/1.x' })).toBe('{"v":1}');
    await expect(text({ commit: 'a'.repeat(40) })).rejects.toMatchObject({ code: 'source/ref-not-found' });
  });

  test('a server without partial clones is read all the same', async () => {
    const config = (value: string) =>
      execFileSync('git', [
        '-C',
        path.join(server.folder, 'catalog.git'),
        'config',
        'uploadpack.allowFilter',
        value,
      ]);
    config('false');
    try {
      expect(await text({})).toBe('{"v":3}');
    } finally {
      config('true');
    }
  });

  test('a repository with SHA-256 objects is read', async () => {
    const bare = path.join(server.folder, 'sha256.git');
    const work = path.join(temp, 'work');
    const git = (...args: string[]): string =>
      execFileSync('git', args, { encoding: 'utf8', env: AS_SOMEBODY }).trim();
    git('init', '--quiet', '--bare', '--object-format=sha256', '--initial-branch=main', bare);
    git('-C', bare, 'config', 'uploadpack.allowFilter', 'true');
    git('init', '--quiet', '--object-format=sha256', '--initial-branch=main', work);
    await writeFile(path.join(work, 'registry.json'), '{"sha":256}');
    git('-C', work, 'add', '.');
    git('-C', work, 'commit', '--quiet', '-m', 'x');
    git('-C', work, 'push', '--quiet', bare, 'main');
    const repository = `${server.origin}/sha256.git`;
    expect(await text({ repository })).toBe('{"sha":256}');
    expect(await text({ repository, commit: git('-C', work, 'rev-parse', 'HEAD') })).toBe('{"sha":256}');
  });

  test('ssh is asked without a dialogue and without a shell of ours', async () => {
    const programs = path.join(temp, 'programs');
    const log = path.join(temp, 'ssh.log');
    await mkdir(programs);
    // Stands in for ssh: notes how it was called and runs the command here instead of there.
    const script = `#!/bin/sh\nprintf '%s\\n' "$@" > ${log}\nfor last; do :; done\nexec sh -c "$last"\n`;
    await writeFile(path.join(programs, 'ssh'), script, { mode: 0o755 });
    const env = { PATH: `${programs}:${process.env['PATH'] ?? ''}` };
    const repository = `git@git.example:${server.folder}/catalog.git`;
    const { bytes } = await fetchAll(source({ repository }, { env }), idle());
    expect(Buffer.from(bytes).toString()).toBe('{"v":3}');
    const lines = (await readFile(log, 'utf8')).trim().split('\n');
    expect(lines.slice(0, 4)).toEqual(['-o', 'BatchMode=yes', '-o', 'ConnectTimeout=15']);
    expect(lines.slice(-2)).toEqual(['git@git.example', `git-upload-pack '${server.folder}/catalog.git'`]);
    expect(server.requests).toEqual([]);
  });

  describe('failures name the thing', () => {
    test.each<[string, () => Partial<GitSourceOptions>, string, RegExp]>([
      [
        'no such repository',
        () => ({ repository: `${server.origin}/nothing.git` }),
        'source/repository-not-found',
        /nothing\.git" is no repository/,
      ],
      ['no such branch', () => ({ branch: 'nope' }), 'source/ref-not-found', /does not have branch "nope"$/],
      [
        'a branch that only ends like one',
        () => ({ branch: '1.x' }),
        'source/ref-not-found',
        /branch "1\.x"/,
      ],
      ['no such tag', () => ({ tag: 'v9' }), 'source/ref-not-found', /does not have tag "v9"$/],
      [
        'no such commit',
        () => ({ commit: 'b'.repeat(40) }),
        'source/ref-not-found',
        /does not have commit "b{40}"$/,
      ],
      ['no such path', () => ({ path: 'a/b.json' }), 'source/path-not-found', /holds no file "a\/b\.json"$/],
      [
        'a folder',
        () => ({ path: 'data' }),
        'source/path-not-found',
        /has a folder where a file is expected: "data"$/,
      ],
      ['a symbolic link', () => ({ path: 'link.json' }), 'source/path-not-found', /has a symbolic link/],
      [
        'a pattern instead of a path',
        () => ({ path: '*.json' }),
        'source/path-not-found',
        /holds no file "\*\.json"$/,
      ],
    ])('%s', async (_what, options, code, message) => {
      await expect(source(options()).fetch(idle())).rejects.toMatchObject({
        code,
        message: expect.stringMatching(message),
      });
    });

    test('a port where nobody listens', async () => {
      const closed = http.createServer().listen(0, '127.0.0.1');
      await once(closed, 'listening');
      const { port } = closed.address() as AddressInfo;
      closed.close();
      const repository = `http://127.0.0.1:${port}/x.git`;
      await expect(source({ repository }).fetch(idle())).rejects.toMatchObject({
        code: 'source/unreachable',
        message: `"${repository}" does not answer`,
      });
    });

    test('a machine without git', async () => {
      await expect(source({}, { env: { PATH: temp } }).fetch(idle())).rejects.toMatchObject({
        code: 'source/git-missing',
      });
    });

    test('a file over the limit', async () => {
      await expect(source({ path: 'big.bin' }, { maxBytes: 1_000_000 }).fetch(idle())).rejects.toMatchObject({
        code: 'source/too-large',
        message: `"${server.url}" gives more than 1000000 bytes for one file`,
      });
    });

    test('an endless download is cut off while it runs', async () => {
      let sent = 0;
      server.intercept = (request, response) => {
        if (request.method !== 'POST') return false;
        const body: Buffer[] = [];
        request.on('data', (chunk: Buffer) => body.push(chunk));
        request.on('end', () => {
          response.writeHead(200, { 'content-type': 'application/x-git-upload-pack-result' });
          if (Buffer.concat(body).includes('ls-refs'))
            response.end(`${packet(`${first} refs/heads/main\n`)}0000`);
          else pipeline(Readable.from(endlessPack((bytes) => (sent += bytes))), response, () => {});
        });
        return true;
      };
      const endless = source({ branch: 'main' }, { maxBytes: 1_000_000, timeoutMs: 20_000 });
      await expect(endless.fetch(idle())).rejects.toMatchObject({ code: 'source/too-large' });
      expect(sent).toBeGreaterThan(1_000_000);
      expect(processesNaming(server.url)).toEqual([]);
    });

    test('a server that goes silent, with everything ended and removed', async () => {
      const asked = new Promise<void>((resolve) => {
        server.intercept = () => {
          resolve();
          return true;
        };
      });
      const failure = source({}, { timeoutMs: 500 }).fetch(idle());
      await asked;
      await expect(failure).rejects.toMatchObject({
        code: 'source/timeout',
        message: `"${server.url}" was not fetched within 500 ms`,
      });
      expect(processesNaming(server.url)).toEqual([]);
    });
  });

  test("the caller's signal ends git and its helpers, with its own reason", async () => {
    const abort = new AbortController();
    server.intercept = () => {
      abort.abort(new Error('enough'));
      return true;
    };
    await expect(source().fetch(abort.signal)).rejects.toThrow('enough');
    expect(processesNaming(server.url)).toEqual([]);
  });

  describe('credentials', () => {
    const username = 'reader';
    let passwordFile: string;

    beforeEach(async () => {
      passwordFile = path.join(temp, 'password');
      await writeFile(passwordFile, 's3cret pässword%\n');
      server.credentials = { username, password: 's3cret pässword%' };
    });

    test('are sent when asked for, and never stand on a command line', async () => {
      const seen: string[] = [];
      server.intercept = () => {
        seen.push(...processesNaming('git'));
        return false;
      };
      expect(await text({ auth: { username, passwordFile } })).toBe('{"v":3}');
      expect(seen.length).toBeGreaterThan(0);
      expect(seen.join('\n')).not.toContain('s3cret');
      expect(server.requests[0]).toMatchObject({ status: 401, authorization: undefined });
    });

    test('the password is read again for every fetch', async () => {
      const rotating = source({ auth: { username, passwordFile } });
      await rotating.fetch(idle());
      server.credentials = { username, password: 'rotated' };
      await expect(rotating.fetch(idle())).rejects.toMatchObject({ code: 'source/auth-failed' });
      await writeFile(passwordFile, '  rotated  \n');
      await rotating.fetch(idle());
    });

    test('may stand in the address, which no message shows', async () => {
      const repository = server.url.replace('://', `://${username}:s3cret%20p%C3%A4ssword%25@`);
      expect(await text({ repository })).toBe('{"v":3}');
      const wrong = source({ repository: server.url.replace('://', '://reader:hunter2@') });
      const error: unknown = await wrong.fetch(idle()).catch((caught: unknown) => caught);
      expect(error).toMatchObject({
        code: 'source/auth-failed',
        message: `"${server.url}" refused the credentials, or wants some`,
      });
      expect(JSON.stringify([error, wrong.label])).not.toContain('hunter2');
    });

    test('missing ones are named as such', async () => {
      await expect(source().fetch(idle())).rejects.toMatchObject({ code: 'source/auth-failed' });
    });

    test.each([
      ['', /is empty$/],
      ['\n \n', /is empty$/],
      ['one\ntwo', /has more than one line$/],
    ])('a password file with %j is refused', async (content, message) => {
      await writeFile(passwordFile, content);
      await expect(source({ auth: { username, passwordFile } }).fetch(idle())).rejects.toMatchObject({
        code: 'source/invalid-credentials',
        message: expect.stringMatching(message),
      });
    });

    test('a missing password file is named', async () => {
      const gone = path.join(temp, 'gone');
      await expect(source({ auth: { username, passwordFile: gone } }).fetch(idle())).rejects.toMatchObject({
        code: 'file/not-found',
        message: `password file "${gone}" does not exist`,
      });
    });

    test('do not follow a redirect to another host', async () => {
      const asked: (string | undefined)[] = [];
      const other = http.createServer((request, response) => {
        asked.push(request.headers.authorization);
        response.writeHead(401, { 'www-authenticate': 'Basic realm="other"' }).end();
      });
      other.listen(0, '127.0.0.1');
      await once(other, 'listening');
      const { port } = other.address() as AddressInfo;
      server.intercept = (request, response) => {
        if (request.headers.authorization === undefined) return false;
        response.writeHead(302, { location: `http://127.0.0.1:${port}${request.url ?? ''}` }).end();
        return true;
      };
      try {
        await expect(source({ auth: { username, passwordFile } }).fetch(idle())).rejects.toMatchObject({
          code: 'source/auth-failed',
        });
        expect(asked.length).toBeGreaterThan(0);
        expect(asked.every((authorization) => authorization === undefined)).toBe(true);
      } finally {
        other.closeAllConnections();
        other.close();
      }
    });
  });

  describe('what could run or read on this machine', () => {
    test('hooks, helpers and rewritten addresses of the user have no effect', async () => {
      const trap = path.join(temp, 'trap');
      await writeFile(
        path.join(temp, '.gitconfig'),
        `[core]\n\thooksPath = ${temp}\n[credential]\n\thelper = "!touch ${trap};"\n[url "http://127.0.0.1:1/"]\n\tinsteadOf = ${server.origin}/\n`,
      );
      const env = {
        PATH: process.env['PATH'],
        HOME: temp,
        GIT_ASKPASS: `/usr/bin/touch ${trap}`,
        GIT_CONFIG_PARAMETERS: "'core.sshCommand=false'",
        GIT_DIR: temp,
      };
      const { bytes } = await fetchAll(source({}, { env }), idle());
      expect(Buffer.from(bytes).toString()).toBe('{"v":3}');
      server.credentials = { username: 'x', password: 'y' };
      await expect(source({}, { env }).fetch(idle())).rejects.toMatchObject({ code: 'source/auth-failed' });
      await expect(readFile(trap)).rejects.toMatchObject({ code: 'ENOENT' });
    });

    test('private addresses are refused before a request when asked to', async () => {
      await expect(source({}, { allowPrivate: false }).fetch(idle())).rejects.toMatchObject({
        code: 'fetch/refused-address',
        message: 'the address of "127.0.0.1" is not public',
      });
      const named = server.url.replace('127.0.0.1', 'localhost');
      await expect(
        source({ repository: named }, { allowPrivate: false }).fetch(idle()),
      ).rejects.toMatchObject({ code: 'fetch/refused-address' });
      expect(server.requests).toEqual([]);
    });
  });
});

const AS_SOMEBODY = {
  PATH: process.env['PATH'],
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_AUTHOR_NAME: 'Test',
  GIT_AUTHOR_EMAIL: 'test@example.test',
  GIT_COMMITTER_NAME: 'Test',
  GIT_COMMITTER_EMAIL: 'test@example.test',
};

/** Command lines of running processes that contain `text`; Linux only, as the end-to-end machines are. */
function processesNaming(text: string): string[] {
  return execFileSync('ps', ['-eo', 'pid,args'], { encoding: 'utf8' })
    .split('\n')
    .filter((line) => line.includes(text) && !line.includes('ps -eo'));
}

/** gitprotocol-common(5), pkt-line. */
function packet(text: string): string {
  return (Buffer.byteLength(text) + 4).toString(16).padStart(4, '0') + text;
}

/** A valid beginning of a pack (gitformat-pack(5)): one file of four gigabytes in stored deflate blocks. */
function* endlessPack(onSent: (bytes: number) => void): Generator<Buffer> {
  const block = Buffer.concat([Buffer.from([0, 0x00, 0x80, 0xff, 0x7f]), Buffer.alloc(0x8000, 'x')]);
  const sideband = (data: Buffer): Buffer =>
    Buffer.concat([Buffer.from((data.length + 5).toString(16).padStart(4, '0')), Buffer.from([1]), data]);
  yield Buffer.from(packet('packfile\n'));
  yield sideband(Buffer.from('PACK\x00\x00\x00\x02\x00\x00\x00\x01\xbf\xff\xff\xff\x7f\x78\x01', 'latin1'));
  for (;;) {
    onSent(block.length);
    yield sideband(block);
  }
}
