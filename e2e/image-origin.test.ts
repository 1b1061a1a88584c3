import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Signing, type Who } from '@skep/cli/runtime/docker/provenance/signing.fixture.ts';
import { createHash } from 'node:crypto';
import { freePort } from './fixtures/free-port.ts';
import { engine, ensureTinyImage } from './images.ts';
import { TINY_SERVER } from './fixtures/tiny-server.ts';
import { component, title } from './require.ts';
import { openUser, printed, type TestUser } from './skep.ts';

// A real registry, a real engine, and signatures as cosign keeps them.

const needed = [await component('engine'), await component('oci-registry')];
const WHO: Who = {
  identity: 'https://git.example/team/echo/.github/workflows/build.yml@refs/heads/main',
  repository: 'https://git.example/team/echo',
  runner: 'github-hosted',
  issuer: 'https://token.example',
};
const PROVENANCE = {
  repository_uri: 'https://git.example/team/echo',
  signer_identity: '/.github/workflows/build.yml',
  runner_environment: 'github-hosted',
  cert_issuer: 'https://token.example',
};
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';

describe.skipIf(!needed.every(({ available }) => available))(
  title('where an image comes from', ...needed),
  () => {
    let signing: Signing;
    let user: TestUser;
    let directory: string;
    let registry: ChildProcess;
    let host: string;
    let digest: string;
    const images = new Set<string>();

    beforeAll(async () => {
      directory = mkdtempSync(path.join(tmpdir(), 'skep-registry-'));
      host = `127.0.0.1:${await freePort()}`;
      const config = path.join(directory, 'registry.yml');
      writeFileSync(
        config,
        `version: 0.1\nlog: {level: info, accesslog: {disabled: true}}\nstorage: {filesystem: {rootdirectory: ${directory}/images}}\nhttp: {addr: "${host}"}\n`,
      );
      registry = spawn('docker-registry', ['serve', config], { stdio: ['ignore', 'ignore', 'pipe'] });
      await printed(registry, 'listening on');
      signing = await Signing.open();
      user = openUser({ SKEP_RUNTIME: 'docker' });
      const root = path.join(directory, 'trusted_root.json');
      writeFileSync(root, JSON.stringify(signing.trustedRoot));
      digest = await push('1');
      const catalogue = path.join(directory, 'catalogue.json');
      const entry = (tag: string) => ({
        description: 'Echoes',
        image: `${host}/team/echo:${tag}`,
        transport: 'stdio',
        provenance: PROVENANCE,
      });
      const servers = { echo: entry('1'), unsigned: entry('2') };
      writeFileSync(
        catalogue,
        JSON.stringify({ version: '1', last_updated: '2026-01-01T00:00:00Z', servers }),
      );
      await ok('config', 'set', 'sigstore_trusted_root', root);
      await ok('config', 'set-registry', catalogue);
    });
    afterAll(async () => {
      await user.end();
      await signing[Symbol.asyncDispose]();
      registry.kill();
      for (const image of images) await engine('DELETE', `/images/${image}?force=1`);
      rmSync(directory, { recursive: true, force: true });
    });

    const ok = async (...args: string[]) => {
      const { code, stdout, stderr } = await user.skep(args);
      if (code !== 0) throw new Error(`skep ${args.join(' ')}: ${stderr}`);
      return { stdout, stderr };
    };

    /** Puts the tiny server into the registry, a little different for each tag; its digest there. */
    async function push(tag: string): Promise<string> {
      const made = await ensureTinyImage(TINY_SERVER);
      const name = `${host}/team/echo:${tag}`;
      execFileSync('docker', ['build', '-q', '-t', name, '-'], {
        input: `FROM ${made}\nLABEL skep.fixture.tag=${tag}\n`,
      });
      execFileSync('docker', ['push', '-q', name]);
      const answer = await fetch(`http://${host}/v2/team/echo/manifests/${tag}`, {
        headers: { accept: `application/vnd.docker.distribution.manifest.v2+json, ${MANIFEST}` },
      });
      const at = answer.headers.get('docker-content-digest') ?? '';
      images.add(name).add(`${host}/team/echo@${at}`);
      return at;
    }

    async function forget(): Promise<void> {
      for (const image of images) await engine('DELETE', `/images/${image}?force=1`);
    }

    async function blob(bytes: Buffer): Promise<{ digest: string; size: number }> {
      const named = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
      const started = await fetch(`http://${host}/v2/team/echo/blobs/uploads/`, { method: 'POST' });
      const to = new URL(started.headers.get('location') ?? '', `http://${host}`);
      to.searchParams.set('digest', named);
      const put = await fetch(to, {
        method: 'PUT',
        body: new Uint8Array(bytes),
        headers: { 'content-type': 'application/octet-stream' },
      });
      expect(put.status).toBe(201);
      return { digest: named, size: bytes.length };
    }

    /** Signs as cosign does, at the tag that stands for the digest. */
    async function sign(at: string, who: Who): Promise<void> {
      const { payload, annotations } = await signing.simple(at, who);
      const layer = {
        mediaType: 'application/vnd.dev.cosign.simplesigning.v1+json',
        ...(await blob(payload)),
        annotations,
      };
      const config = {
        mediaType: 'application/vnd.oci.image.config.v1+json',
        ...(await blob(Buffer.from('{}'))),
      };
      const put = await fetch(`http://${host}/v2/team/echo/manifests/${at.replace(':', '-')}.sig`, {
        method: 'PUT',
        body: JSON.stringify({ schemaVersion: 2, mediaType: MANIFEST, config, layers: [layer] }),
        headers: { 'content-type': MANIFEST },
      });
      expect(put.status).toBe(201);
    }

    const saved = (name: string): { image: string } =>
      JSON.parse(readFileSync(path.join(user.dir, 'state/skep/runconfigs', `${name}.json`), 'utf8')) as {
        image: string;
      };

    test('that nobody signed is refused, with nothing left, or runs with its doubt said', async () => {
      const refused = await user.skep(['run', 'echo', '--image-verification', 'enabled']);
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('the image is not signed')]);
      expect((await ok('list', '--all', '--format', 'json')).stdout.trim()).toBe('[]');
      expect((await ok('run', 'echo', '--name', 'doubtful')).stderr).toContain(
        'Warning: image verification failed',
      );
      await ok('rm', 'doubtful');
    });

    test('that somebody else signed is refused', async () => {
      await sign(digest, { ...WHO, repository: 'https://git.example/mallory/echo' });
      const refused = await user.skep(['run', 'echo', '--image-verification', 'enabled']);
      expect([refused.code, refused.stderr]).toEqual([
        1,
        expect.stringContaining('image provenance does not match: its repository is'),
      ]);
    });

    test('is verified, and what was verified is pulled, run and saved, whatever its tag means by then', async () => {
      await sign(digest, WHO);
      await forget();
      const { stderr } = await ok('run', 'echo', '--name', 'verified', '--image-verification', 'enabled');
      expect(stderr).not.toContain('Warning: image');
      expect(saved('verified').image).toBe(`${host}/team/echo:1@${digest}`);
      const container = JSON.parse((await engine('GET', '/containers/verified/json')).text) as {
        Config: { Image: string };
      };
      expect(container.Config.Image).toContain(digest);
      // Somebody who may push moves the tag; what runs is what was verified.
      execFileSync('docker', ['build', '-q', '-t', `${host}/team/echo:1`, '-'], {
        input: `FROM ${await ensureTinyImage(TINY_SERVER)}\nLABEL moved=1\n`,
      });
      execFileSync('docker', ['push', '-q', `${host}/team/echo:1`]);
      await ok('stop', 'verified');
      await ok('start', 'verified');
      expect(saved('verified').image).toBe(`${host}/team/echo:1@${digest}`);
      await forget();
      await ok('rm', 'verified');
      const moved = await user.skep(['run', 'echo', '--image-verification', 'enabled']);
      expect([moved.code, moved.stderr]).toEqual([1, expect.stringContaining('the image is not signed')]);
      digest = await push('1');
    });

    test('is asked of the catalogue for an imported file, which is not believed', async () => {
      await sign(digest, WHO);
      await ok('config', 'set', 'image_verification', 'enabled');
      await ok('run', 'echo', '--name', 'exported');
      await ok('export', 'exported', path.join(directory, 'x.json'));
      await ok('rm', 'exported');
      await ok('run', '--from-config', path.join(directory, 'x.json'));
      await ok('rm', 'exported');
      const file = JSON.parse(readFileSync(path.join(directory, 'x.json'), 'utf8')) as object;
      const unsigned = await push('2');
      writeFileSync(
        path.join(directory, 'y.json'),
        JSON.stringify({ ...file, image: `${host}/team/echo:2@${unsigned}` }),
      );
      const refused = await user.skep(['run', '--from-config', path.join(directory, 'y.json')]);
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('the image is not signed')]);
      const strange = await user.skep(['run', await ensureTinyImage(TINY_SERVER)]);
      expect([strange.code, strange.stderr]).toEqual([
        1,
        expect.stringContaining('provenance server information not set'),
      ]);
      await ok('config', 'unset', 'image_verification');
    });
  },
);
