import { fetchAll } from '@skep/registry/sources/scripted-client.fixture.ts';
import { execFileSync } from 'node:child_process';
import { mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gitSource, type GitSourceOptions } from '@skep/registry/sources/git/git-source.ts';
import type { GitSurroundings } from '@skep/registry/sources/git/session.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { gitMissing, startGitServer, type GitServer } from './fixtures/git-server.ts';

// What a repository or its server may do to the machine that reads it.

const missing = gitMissing();
const MIB = 1024 * 1024;
const idle = (): AbortSignal => new AbortController().signal;

describe.skipIf(missing !== '')(
  missing === '' ? 'a hostile git source' : `a hostile git source [skipped: ${missing}]`,
  () => {
    let server: GitServer;
    let temp: string;
    beforeEach(async () => {
      server = await startGitServer();
      temp = await mkdtemp(path.join(tmpdir(), 'skep-git-test-'));
    });
    afterEach(async () => {
      expect(await readdir(temp)).toEqual([]);
      const running = execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' });
      expect(running.split('\n').filter((line) => line.includes(server.origin))).toEqual([]);
      await server.close();
      await rm(temp, { recursive: true });
    });

    async function text(options: Partial<GitSourceOptions> = {}, limits: Partial<GitSurroundings> = {}) {
      const source = gitSource(
        { repository: server.url, ...options },
        {
          env: { PATH: process.env['PATH'] },
          tempDir: temp,
          clock: systemClock,
          allowPrivate: true,
          ...limits,
        },
      );
      return Buffer.from((await fetchAll(source, idle())).bytes).toString('utf8');
    }

    // Linux holds processes to their memory; elsewhere the time limit ends this.
    test.skipIf(process.platform !== 'linux')(
      'a list of refs without an end takes no more memory than allowed',
      async () => {
        await server.commit('first', { 'registry.json': '[]' });
        server.intercept = (request, response) => {
          if (request.method !== 'POST') return false;
          response.writeHead(200, { 'content-type': 'application/x-git-upload-pack-result' });
          sendRefs(response, 0);
          return true;
        };
        await expect(text({}, { maxMemory: 64 * MIB })).rejects.toMatchObject({
          code: 'source/too-large',
          message: `"${server.url}" gives more than fits into the memory that git may take`,
        });
      },
    );

    test('a file that is much larger than its pack passes through little memory, and is refused over its limit', async () => {
      await server.commit('first', { 'registry.json': Buffer.alloc(32 * MIB, ' ') });
      const limits = { maxMemory: 24 * MIB };
      expect((await text({}, limits)).length).toBe(32 * MIB);
      await expect(text({}, { ...limits, maxBytes: 28 * MIB })).rejects.toMatchObject({
        code: 'source/too-large',
      });
    });

    test('filters of the repository are not run, and what they would replace is read as it lies there', async () => {
      const pointer = 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n';
      await server.commit('first', {
        '.gitattributes': 'registry.json filter=lfs diff=lfs merge=lfs -text\n',
        '.lfsconfig': '[lfs]\n\turl = http://127.0.0.1:1/\n',
        'registry.json': pointer,
      });
      expect(await text()).toBe(pointer);
    });

    test('passwords that the user keeps for other programs are not given away', async () => {
      await server.commit('first', { 'registry.json': '[]' });
      const home = await mkdtemp(path.join(tmpdir(), 'skep-git-home-'));
      await writeFile(path.join(home, '.netrc'), 'machine 127.0.0.1 login bot password hunter2\n', {
        mode: 0o600,
      });
      server.credentials = { username: 'bot', password: 'hunter2' };
      try {
        const env = { PATH: process.env['PATH'], HOME: home };
        await expect(text({}, { env })).rejects.toMatchObject({ code: 'source/auth-failed' });
        expect(server.requests.map(({ authorization }) => authorization)).toEqual(
          server.requests.map(() => undefined),
        );
      } finally {
        await rm(home, { recursive: true });
      }
    });

    test('submodules are neither fetched nor read', async () => {
      const asked: (string | undefined)[] = [];
      const other = createServer((request, response) => {
        asked.push(request.url);
        response.writeHead(404).end();
      }).listen(0, '127.0.0.1');
      const address = await new Promise<string>((resolve) =>
        other.once('listening', () => resolve(JSON.stringify(other.address()))),
      );
      const { port }: { port: number } = JSON.parse(address);
      const first = await server.commit('first', {
        'registry.json': '[]',
        '.gitmodules': `[submodule "sub"]\n\tpath = sub\n\turl = http://127.0.0.1:${port}/sub.git\n`,
      });
      await server.git('update-index', '--add', '--cacheinfo', `160000,${first},sub`);
      await server.git('commit', '--quiet', '-m', 'submodule');
      await server.push();
      try {
        expect(await text()).toBe('[]');
        await expect(text({ path: 'sub' })).rejects.toMatchObject({
          code: 'source/path-not-found',
          message: `"${server.url}" has a submodule where a file is expected: "sub"`,
        });
        await expect(text({ path: 'sub/registry.json' })).rejects.toMatchObject({
          code: 'source/path-not-found',
        });
        expect(asked).toEqual([]);
      } finally {
        other.close();
      }
    });

    test('links lead nowhere, neither out of the repository nor inside it', async () => {
      await symlink('/etc', path.join(server.folder, 'work', 'out'));
      await symlink('data', path.join(server.folder, 'work', 'in'));
      await server.commit('first', { 'data/registry.json': '[]' });
      for (const file of ['out/passwd', 'in/registry.json', 'in']) {
        await expect(text({ path: file })).rejects.toMatchObject({ code: 'source/path-not-found' });
      }
    });

    test('names that look like options are names', async () => {
      const names = [
        '--output=x',
        '-',
        '--upload-pack=touch trap',
        ':(top)x',
        '$(touch trap)',
        '`touch trap`; x',
      ];
      await server.commit('first', Object.fromEntries(names.map((name) => [name, `"${name}"`])));
      for (const name of names) expect(await text({ path: name })).toBe(`"${name}"`);
      for (const branch of ['--upload-pack=touch trap', '-x']) {
        expect(() => gitSource({ repository: server.url, branch }, surroundings())).toThrow(
          expect.objectContaining({ code: 'source/invalid-ref' }),
        );
      }
      for (const repository of [
        '--upload-pack=touch trap',
        'ext::sh -c touch% trap',
        'file:///etc',
        '/etc',
        'fd::7',
      ]) {
        expect(() => gitSource({ repository }, surroundings())).toThrow(
          expect.objectContaining({ code: 'source/invalid-repository' }),
        );
      }
    });

    function surroundings(): GitSurroundings {
      return { env: {}, tempDir: temp, clock: systemClock, allowPrivate: true };
    }

    test('a server that moves git to this machine by a redirect is not followed there', async () => {
      await server.commit('first', { 'registry.json': '[]' });
      for (const target of ['file:///etc', 'ftp://127.0.0.1/x', 'ext::sh']) {
        server.intercept = (_request, response) => {
          response.writeHead(302, { location: target }).end();
          return true;
        };
        await expect(text()).rejects.toMatchObject({ code: expect.stringMatching(/^source\//) });
      }
    });
  },
);

/** gitprotocol-common(5), pkt-line, of one ref after the other, as fast as they are taken. */
function sendRefs(response: ServerResponse, first: number): void {
  const packets = Array.from({ length: 2_000 }, (_, index) => {
    const number = first + index;
    const line = `${number.toString(16).padStart(40, '0')} refs/heads/${number}\n`;
    return (line.length + 4).toString(16).padStart(4, '0') + line;
  });
  if (response.destroyed) return;
  response.write(packets.join(''), () => sendRefs(response, first + 2_000));
}
