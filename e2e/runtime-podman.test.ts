import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runtimeContract } from '@skep/cli/runtime/contract.ts';
import { detectRuntime } from '@skep/cli/runtime/detect.ts';
import { askEngine, podmanEngine } from './fixtures/podman-engine.ts';
import { TINY_SERVER } from './fixtures/tiny-server.ts';
import { ensureScriptImage, ensureTinyImage } from './images.ts';
import { component, title } from './require.ts';
import { testEnvironment } from './runtimes.ts';
import { ask, openUser, type TestUser } from './skep.ts';

const probeScript = path.join(import.meta.dirname, 'fixtures/probe-server.mjs');

const engineThere = await component('engine');
const podmanThere = await component('podman');
const isThere = engineThere.available && podmanThere.available;

const WAYS = [
  ['run by root', false],
  ['without root', true],
] as const;

const named = (who: string): string => title(`the docker runtime on Podman ${who}`, engineThere, podmanThere);

describe.skipIf(!isThere).each(WAYS.map(([who, rootless]) => [named(who), rootless] as const))(
  '%s',
  (_who, rootless) => {
    const directory = mkdtempSync(path.join(tmpdir(), 'skep-runtime-'));
    const podman = podmanEngine(rootless);
    const endpoint = { DOCKER_HOST: `unix://${podman.socket}` };
    const directories = { dataDir: path.join(directory, 'data'), cacheDir: path.join(directory, 'cache') };
    runtimeContract({
      async open() {
        await podman.start();
        const environment = testEnvironment(directories);
        return detectRuntime(
          { ...environment, env: { ...environment.env, ...endpoint } },
          { kind: 'docker' },
        );
      },
      probeServer: async () =>
        podman.load(await ensureScriptImage('skep-test/probe:1', readFileSync(probeScript, 'utf8'))),
      missing: {
        source: { kind: 'image', reference: '127.0.0.1:9/not/there:1' },
        code: 'runtime/image-not-found',
      },
      hold(spec) {
        const script = path.join(import.meta.dirname, 'runtime-holder.ts');
        const args = [script, 'docker', directories.dataDir, directories.cacheDir, JSON.stringify(spec)];
        return spawn(process.execPath, args, {
          stdio: ['ignore', 'pipe', 'inherit'],
          env: { ...process.env, ...endpoint },
        });
      },
      // What of it Podman 5 and hosts with newer control groups do, was never tried.
      lacks: ['input', 'told-memory', ...(rootless ? (['limits'] as const) : [])],
      ...(podman.owner !== undefined && { owner: podman.owner }),
      leftovers: async () => {
        const filters = encodeURIComponent(JSON.stringify({ label: ['skep.managed=true'] }));
        const left = ['containers/json?all=1', `networks?filters=${filters}`].map((what) =>
          askEngine<object[]>(podman.socket, 'GET', `/v1.41/${what}`),
        );
        return (await Promise.all(left)).flat().map((one) => JSON.stringify(one));
      },
      async close() {
        await podman.end();
        rmSync(directory, { recursive: true, force: true });
      },
    });

    describe('as a person uses it', () => {
      let image: string;
      let user: TestUser;
      beforeAll(async () => {
        image = await podman.load(await ensureTinyImage(TINY_SERVER));
        user = openUser(endpoint);
      });
      afterAll(() => user.end());

      test('goes on with a server when its supervisor was killed', async () => {
        const started = await user.skep(['run', image, '--name', 'kept']);
        expect(started.code, started.stderr).toBe(0);
        const url = started.stdout.trim();
        expect(await ask(url, 'tools/list')).toHaveProperty('result.tools');
        await user.killSupervisor();
        const again = await user.skep(['start', 'kept']);
        expect(again.code, again.stderr).toBe(0);
        expect(await ask(url, 'ping')).toMatchObject({ result: {} });
      });

      test('refuses isolation before anything is made', async () => {
        const refused = await user.skep(['run', image, '--name', 'alone', '--isolate-network']);
        expect(refused.code, refused.stderr).toBe(1);
        expect(refused.stderr).toContain('"alone" cannot be isolated: Podman');
        const { stdout } = await user.skep(['list', '--all', '--format', 'json']);
        expect(JSON.parse(stdout)).not.toContainEqual(expect.objectContaining({ name: 'alone' }));
      });
    });
  },
);
