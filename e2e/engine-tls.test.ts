import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { privateEngine, type PrivateEngine } from './fixtures/private-engine.ts';
import { testAuthority } from './fixtures/test-authority.ts';
import { TINY_SERVER } from './fixtures/tiny-server.ts';
import { ensureTinyImage } from './images.ts';
import { component, title } from './require.ts';
import { ask, openUser, type TestUser } from './skep.ts';

const ours = await component('private-engine');
/** Addresses of the engine: its certificate holds the first one alone. */
const [NAMED, OTHER, HERE] = ['10.213.77.2', '10.213.77.3', '10.213.77.1'];
const DEVICE = `sk-tls-${process.pid}`;

describe.skipIf(!ours.available)(title('an engine that speaks TLS alone', ours), () => {
  const root = mkdtempSync(path.join(tmpdir(), 'skep-tls-'));
  const authority = testAuthority(path.join(root, 'ours'));
  const client = authority.issue('client');
  const stranger = testAuthority(path.join(root, 'another')).issue('stranger');
  let engine: PrivateEngine;
  let image: string;
  let refused: TestUser;

  const start = async (certificate: string): Promise<void> => {
    const file = (name: string): string => path.join(certificate, name);
    const tls = ['--tlsverify', '--tlscacert', file('ca.pem'), '--tlscert', file('cert.pem'), '--tlskey', file('key.pem')]; // prettier-ignore
    await engine.start('-H', 'tcp://0.0.0.0:2376', ...tls);
    const ip = (...words: string[]): void => void execFileSync('ip', words);
    ip('link', 'add', DEVICE, 'type', 'veth', 'peer', 'name', 'outside', 'netns', `${engine.pid}`);
    ip('address', 'add', `${HERE}/29`, 'dev', DEVICE);
    ip('link', 'set', DEVICE, 'up');
    const inside = ['-t', `${engine.pid}`, '-n', 'ip'];
    for (const one of [NAMED, OTHER])
      execFileSync('nsenter', [...inside, 'address', 'add', `${one}/29`, 'dev', 'outside']);
    execFileSync('nsenter', [...inside, 'link', 'set', 'outside', 'up']);
  };

  beforeAll(async () => {
    engine = privateEngine();
    await start(authority.issue('server', { for: [`IP:${NAMED}`] }));
    vi.stubEnv('DOCKER_HOST', `unix://${engine.socket}`);
    image = await ensureTinyImage(TINY_SERVER);
    vi.unstubAllEnvs();
    refused = openUser();
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    await refused.end();
    await engine.end();
    rmSync(root, { recursive: true, force: true });
  });

  const at = (host: string | undefined, directory: string) =>
    ({ DOCKER_HOST: `tcp://${host}:2376`, DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: directory }) as const;

  /** Without the certificate of a client. */
  const anonymous = (): string => {
    const directory = path.join(root, 'anonymous');
    mkdirSync(directory, { recursive: true });
    cpSync(path.join(client, 'ca.pem'), path.join(directory, 'ca.pem'));
    return directory;
  };
  /** Trusts the engine, and is known to another authority. */
  const foreign = (): string => {
    const directory = path.join(root, 'foreign');
    cpSync(stranger, directory, { recursive: true });
    cpSync(path.join(client, 'ca.pem'), path.join(directory, 'ca.pem'));
    return directory;
  };

  async function refusal(env: Readonly<Record<string, string>>): Promise<string> {
    const { code, stdout, stderr } = await refused.skep(['run', image, '--name', 'refused'], { env });
    expect({ code, stdout }, stderr).toEqual({ code: 1, stdout: '' });
    const lines = stderr.split('\n').filter((line) => line.startsWith('Error: '));
    expect(lines).toHaveLength(1);
    return lines[0] ?? '';
  }

  test('runs servers for a client that proves who it is, and its supervisor finds it again', async () => {
    await using user = disposed(openUser(at(NAMED, client)));
    const checked = await user.skep(['runtime', 'check']);
    expect(checked.stdout, checked.stderr).toContain(`https://${NAMED}:2376`);
    const started = await user.skep(['run', image, '--name', 'far']);
    expect(started.code, started.stderr).toBe(0);
    expect(await ask(started.stdout.trim(), 'tools/list')).toHaveProperty('result.tools');
    await user.killSupervisor();
    const again = await user.skep(['start', 'far']);
    expect(again.code, again.stderr).toBe(0);
    expect(await ask(started.stdout.trim(), 'ping')).toMatchObject({ result: {} });
  });

  test('is found by the docker context, with its TLS files, also for a server that was made there before', async () => {
    await using user = disposed(openUser());
    const docker = (...words: string[]): void =>
      void execFileSync('docker', words, { env: { ...user.env, DOCKER_HOST: '' }, stdio: 'pipe' });
    const file = (name: string): string => path.join(client, name);
    const tls = `ca=${file('ca.pem')},cert=${file('cert.pem')},key=${file('key.pem')}`;
    docker('context', 'create', 'far', '--docker', `host=tcp://${NAMED}:2376,${tls}`);
    docker('context', 'use', 'far');
    const env = { DOCKER_HOST: '' };
    const started = await user.skep(['run', image, '--name', 'far'], { env });
    expect(started.code, started.stderr).toBe(0);
    await user.killSupervisor();
    docker('context', 'use', 'default');
    const again = await user.skep(['start', 'far'], { env });
    expect(again.code, again.stderr).toBe(0);
    expect(await ask(started.stdout.trim(), 'ping')).toMatchObject({ result: {} });
    // Whoever uses another engine by now sees it as it is.
    const listed = await user.skep(['list', '--format', 'json'], {
      env: { DOCKER_HOST: 'unix:///nowhere.sock' },
    });
    expect(JSON.parse(listed.stdout)).toMatchObject([{ name: 'far', status: 'running' }]);
    const removed = await user.skep(['rm', 'far'], { env });
    expect(removed.code, removed.stderr).toBe(0);
  });

  test('is refused with one line where one of both is not who it has to be', async () => {
    expect(await refusal(at(NAMED, stranger))).toContain('is of an authority that is not trusted here');
    expect(await refusal(at(OTHER, client))).toContain('its certificate is for another name');
    for (const directory of [anonymous(), foreign()])
      expect(await refusal(at(NAMED, directory))).toContain('it does not take our client certificate');
    expect(await refusal({ DOCKER_HOST: `tcp://${NAMED}:2376` })).toContain('speaks TLS alone');
  });

  test('is refused when its certificate has expired', async () => {
    await engine.kill();
    await start(authority.issue('expired', { for: [`IP:${NAMED}`], expired: true }));
    expect(await refusal(at(NAMED, client))).toContain('its certificate has expired');
  });
});

function disposed<User extends { end(): Promise<void> }>(user: User): User & AsyncDisposable {
  return { ...user, [Symbol.asyncDispose]: () => user.end() };
}
