import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { bridgeAddress } from './fixtures/bridge-address.ts';
import { builtBy } from './fixtures/built-by.ts';
import { GO_SERVER, moduleProxyOf } from './fixtures/module-proxy.ts';
import { MOODY_SERVER } from './fixtures/moody-server.ts';
import { npmRegistryOf, npmRegistryWith, programPackage } from './fixtures/npm-registry.ts';
import { buildImage, engine, ensureGoBase, ensureNodeBase } from './images.ts';
import { component, engineSocket, title } from './require.ts';
import { ask, ended, openUser, type SkepResult, type TestUser } from './skep.ts';

const engineThere = await component('engine');
const npm = await component('npm');
const go = await component('go');

/** A name of its own, so that no other file builds the same image at the same time. */
const BASE = 'skep-test/node:packages';
const TOKEN = 'tkn-4b1f-of-the-private-registry';

let user: TestUser;
beforeEach(() => {
  user = openUser({ SKEP_RUNTIME: 'docker' });
  const password = path.join(user.dir, 'password');
  writeFileSync(password, 'long enough for a test\n', { mode: 0o600 });
  Object.assign(user.env, { SKEP_SECRETS_PASSWORD_FILE: password });
});
afterEach(async () => {
  await user.end();
  expect(await builtBy(user)).toEqual([]);
});

async function ok(...args: readonly string[]): Promise<SkepResult> {
  const result = await user.skep(args);
  expect(result.code, result.stderr).toBe(0);
  return result;
}

const unique = (name: string): string => `skep-test-${name}-${randomBytes(3).toString('hex')}`;

/** What `docker save` writes: every layer, the history and the configuration of an image. */
async function savedImage(reference: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  await new Promise<void>((resolve, reject) => {
    const request = { socketPath: engineSocket(), path: `/images/${reference}/get` };
    http
      .get(request, (response) => {
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', resolve).on('error', reject);
      })
      .on('error', reject);
  });
  return Buffer.concat(chunks);
}

function savedConfig(name: string): { readonly text: string; readonly image: string } {
  const text = readFileSync(path.join(user.dir, 'state/skep/runconfigs', `${name}.json`), 'utf8');
  return { text, image: (JSON.parse(text) as { image: string }).image };
}

/** Files of the user's that hold the text. */
const filesWith = (text: string): readonly string[] =>
  readdirSync(user.dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))
    .filter((file) => readFileSync(file).includes(text));

async function signIn(registry: { readonly url: string }): Promise<void> {
  const npmrc = path.join(user.dir, 'logins');
  writeFileSync(npmrc, `//${new URL(registry.url).host}/:_authToken=${TOKEN}\n`);
  await ok('config', 'set-build-auth-file', 'npmrc', npmrc);
  writeFileSync(npmrc, '');
  await ok('config', 'set-build-env', 'NPM_CONFIG_REGISTRY', registry.url);
}

/** One that signs itself, for an address. */
function certificateFor(host: string): {
  readonly key: string;
  readonly cert: string;
  readonly file: string;
} {
  const [key, file] = ['key.pem', 'cert.pem'].map((name) => path.join(user.dir, name)) as [string, string];
  const names = ['-subj', '/CN=modules', '-addext', `subjectAltName=IP:${host}`, '-days', '1'];
  const made = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', file, ...names];
  execFileSync('openssl', made, { stdio: 'ignore' });
  return { key: readFileSync(key, 'utf8'), cert: readFileSync(file, 'utf8'), file };
}

describe.skipIf(!engineThere.available || !npm.available)(
  title('images of packages', engineThere, npm),
  { timeout: 120_000 },
  () => {
    beforeEach(async () => {
      await ensureNodeBase(BASE);
    });

    test('a private package is built with a login that nothing keeps, and used again without a build', async () => {
      const name = unique('private');
      await using registry = await npmRegistryWith(name, MOODY_SERVER, {
        host: await bridgeAddress(),
        token: TOKEN,
      });
      await signIn(registry);
      const run = (as: string): Promise<SkepResult> =>
        ok('run', `npx://${name}`, '--name', as, '--runtime-image', BASE);
      const first = await run('one');
      expect(await ask(first.stdout.trim(), 'tools/list')).toHaveProperty('result.tools');
      const { image, text } = savedConfig('one');
      const saved = await savedImage(image);
      expect(saved.includes(name)).toBe(true);
      expect(saved.includes(TOKEN)).toBe(false);
      expect(text + first.stderr).not.toContain(TOKEN);
      expect(filesWith(TOKEN)).toEqual([]);
      const fetched = (): number => registry.requests.filter(({ url }) => url.endsWith('.tgz')).length;
      const before = fetched();
      expect(before).toBeGreaterThan(0);
      const second = await run('two');
      expect(second.stderr).not.toContain('Building');
      expect(fetched()).toBe(before);
      expect(savedConfig('two').image).toBe(image);
      expect((await builtBy(user)).length).toBeGreaterThan(0);
    });

    test('a package that takes a login along is refused, and the login is not told', async () => {
      const name = unique('thief');
      const theft =
        'node -e "fs.writeFileSync(\'taken\', fs.readFileSync(process.env.npm_config_userconfig))"';
      const thief = programPackage(name, MOODY_SERVER, { scripts: { install: theft } });
      await using registry = await npmRegistryOf([thief], { host: await bridgeAddress(), token: TOKEN });
      await signIn(registry);
      const { code, stderr } = await user.skep(['run', `npx://${name}`, '--runtime-image', BASE]);
      expect(code, stderr).toBe(1);
      expect(stderr).toContain(
        `skep: the package kept a secret of the build, in /build/node_modules/${name}/taken`,
      );
      expect(stderr).not.toContain(TOKEN);
      expect(await builtBy(user)).toEqual([]);
    });

    test('a build with a login that is given up leaves nothing', async () => {
      const name = unique('stalled');
      await using registry = await npmRegistryWith(name, MOODY_SERVER, {
        host: await bridgeAddress(),
        token: TOKEN,
        stalls: true,
      });
      await signIn(registry);
      const running = user.start(['run', `npx://${name}`, '--runtime-image', BASE]);
      const finished = ended(running);
      await vi.waitFor(() => expect(registry.requests.some(({ url }) => url.endsWith('.tgz'))).toBe(true), {
        timeout: 60_000,
      });
      running.kill('SIGINT');
      expect((await finished).code).not.toBe(0);
      expect(await builtBy(user)).toEqual([]);
    });

    test('two servers that are run at once from one package have it built once', async () => {
      const name = unique('twice');
      await using registry = await npmRegistryWith(name, MOODY_SERVER, { host: await bridgeAddress() });
      await ok('config', 'set-build-env', 'NPM_CONFIG_REGISTRY', registry.url);
      const both = await Promise.all(
        ['one', 'two'].map((as) =>
          user.skep(['run', `npx://${name}`, '--name', as, '--runtime-image', BASE]),
        ),
      );
      for (const { code, stderr } of both) expect(code, stderr).toBe(0);
      expect(registry.requests.filter(({ url }) => url.endsWith('.tgz'))).toHaveLength(1);
    });

    test('packages for an image without a package manager are refused by name', async () => {
      const name = unique('needs');
      await using registry = await npmRegistryWith(name, MOODY_SERVER, { host: await bridgeAddress() });
      const { code, stderr } = await user.skep(
        ['run', `npx://${name}`, '--runtime-image', BASE, '--runtime-add-package', 'jq'],
        { env: { npm_config_registry: registry.url } },
      );
      expect(code).toBe(1);
      expect(stderr).toMatch(
        /the base image has no package manager \(apk, apt-get, dnf\); give another base image/,
      );
    });

    test('an image that is built under a name of the person is run by it, and stays when it is not used', async () => {
      const name = unique('tagged');
      await using registry = await npmRegistryWith(name, MOODY_SERVER, { host: await bridgeAddress() });
      await ok('config', 'set-build-env', 'NPM_CONFIG_REGISTRY', registry.url);
      const tag = `${name}:own`;
      try {
        const built = await ok(
          'build',
          '-t',
          tag,
          `npx://${name}`,
          '--runtime-image',
          BASE,
          '--',
          '--baked',
          "it's",
        );
        expect(built.stdout).toBe(`Successfully built container image: ${tag}\n`);
        const { text } = await engine('GET', `/images/${tag}/json`);
        expect((JSON.parse(text) as { Config: { Entrypoint: string[] } }).Config.Entrypoint).toEqual([
          '/app/server/run',
          '--baked',
          "it's",
        ]);
        await ok('build', `npx://${name}`, '--runtime-image', BASE);
        expect(await builtBy(user)).not.toEqual([]);
        await ok('prune');
        expect((await engine('GET', `/images/${tag}/json`)).status).toBe(200);
        const ran = await ok('run', tag, '--transport', 'stdio');
        expect(await ask(ran.stdout.trim(), 'tools/list')).toHaveProperty('result.tools');
      } finally {
        await user.skep(['rm', '--all', '--data']);
        await engine('DELETE', `/images/${tag}?force=1`);
        await ok('prune');
      }
    });

    test('the Dockerfile that is printed builds alone', async () => {
      const name = unique('printed');
      await using registry = await npmRegistryWith(name, MOODY_SERVER, { host: await bridgeAddress() });
      await ok('config', 'set-build-env', 'NPM_CONFIG_REGISTRY', registry.url);
      const file = path.join(user.dir, 'Dockerfile');
      const printedText = await ok('build', '--dry-run', `npx://${name}`, '--runtime-image', BASE);
      await ok('build', '--output', file, `npx://${name}`, '--runtime-image', BASE);
      expect(readFileSync(file, 'utf8')).toBe(printedText.stdout);
      const tag = `${name}:alone`;
      try {
        await buildImage(tag, printedText.stdout.split('\n'));
        const ran = await ok('run', tag, '--transport', 'stdio');
        expect(await ask(ran.stdout.trim(), 'tools/list')).toHaveProperty('result.tools');
      } finally {
        await user.skep(['rm', '--all', '--data']);
        await engine('DELETE', `/images/${tag}?force=1`);
      }
    });
  },
);

const hasOpenssl = spawnSync('openssl', ['version']).status === 0;

describe.skipIf(!engineThere.available || !go.available || !hasOpenssl)(
  title('images of Go packages [needs openssl]', engineThere, go),
  { timeout: 240_000 },
  () => {
    test('a module of a private proxy is built into an image that holds its program alone', async () => {
      const module = { path: 'example.test/honest', files: { 'cmd/honest/main.go': GO_SERVER } };
      const host = await bridgeAddress();
      const [login, tls] = [`me:${TOKEN}`, certificateFor(host)];
      await using proxy = await moduleProxyOf([module], 404, { host, login, tls });
      await ok('config', 'set-ca-cert', tls.file);
      await ok('config', 'set-build-env', 'GOPROXY', proxy.url);
      await ok('config', 'set-build-env', 'GONOSUMDB', '*');
      const netrc = path.join(user.dir, 'logins');
      writeFileSync(
        netrc,
        [host, new URL(proxy.url).host].map((one) => `machine ${one} login me password ${TOKEN}\n`).join(''),
      );
      await ok('config', 'set-build-auth-file', 'netrc', netrc);
      writeFileSync(netrc, '');
      const target = 'go://example.test/honest/cmd/honest';
      const ran = await ok('run', target, '--name', 'honest', '--runtime-image', await ensureGoBase());
      expect(await ask(ran.stdout.trim(), 'tools/list')).toHaveProperty('result.tools');
      const { image, text } = savedConfig('honest');
      expect(text).toContain('"package_version": "v1.0.0"');
      const saved = await savedImage(image);
      expect(saved.length).toBeLessThan(20_000_000);
      expect(saved.includes(TOKEN)).toBe(false);
      expect(saved.includes(tls.cert)).toBe(false);
    });

    test('a project of this machine is built from its sources alone, and found again', async () => {
      const project = path.join(user.dir, 'project');
      mkdirSync(path.join(project, 'cmd/own'), { recursive: true });
      const files = {
        'go.mod': 'module example.test/own\n\ngo 1.16\n',
        'cmd/own/main.go': GO_SERVER,
        '.dockerignore': '.env\n',
        '.env': TOKEN,
        Dockerfile: 'FROM nothing-of-ours\n',
      };
      for (const [name, text] of Object.entries(files)) writeFileSync(path.join(project, name), text);
      const listed = readdirSync(project, { recursive: true });
      const base = await ensureGoBase();
      const run = (as: string): Promise<SkepResult> =>
        user.skep(['run', 'go://./cmd/own', '--name', as, '--runtime-image', base], { cwd: project });
      const first = await run('one');
      expect(first.code, first.stderr).toBe(0);
      expect(await ask(first.stdout.trim(), 'tools/list')).toHaveProperty('result.tools');
      const second = await run('two');
      expect(second.stderr).not.toContain('Building');
      expect(savedConfig('two').image).toBe(savedConfig('one').image);
      expect((await savedImage(savedConfig('one').image)).includes(TOKEN)).toBe(false);
      expect(readdirSync(project, { recursive: true })).toEqual(listed);
    });
  },
);
