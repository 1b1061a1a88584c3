import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { bridgeAddress } from './fixtures/bridge-address.ts';
import { builtBy } from './fixtures/built-by.ts';
import { GO_SERVER, moduleProxyOf } from './fixtures/module-proxy.ts';
import { MOODY_SERVER } from './fixtures/moody-server.ts';
import { npmRegistryWith } from './fixtures/npm-registry.ts';
import { pythonIndexOf, pythonServer } from './fixtures/python-index.ts';
import { ensureNodeBase } from './images.ts';
import { component, title } from './require.ts';
import { openUser, type SkepResult, type TestUser } from './skep.ts';

// A second run of an unchanged package builds and fetches nothing: what its registry is asked is counted.

const engineThere = await component('engine');
const sandboxThere = await component('sandbox');
const pythonThere = await component('python');
const goThere = await component('go');

let user: TestUser;
afterEach(() => user.end());

async function ran(...args: readonly string[]): Promise<SkepResult> {
  const result = await user.skep(['run', ...args]);
  expect(result.code, result.stderr).toBe(0);
  return result;
}

function imageOf(name: string): string {
  const text = readFileSync(path.join(user.dir, 'state/skep/runconfigs', `${name}.json`), 'utf8');
  return (JSON.parse(text) as { image: string }).image;
}

interface Repeated {
  /** Of a package without a version, and with the one that it has. */
  readonly target: string;
  readonly pinned: string;
  /** Paths that its registry was asked for. */
  readonly asked: () => readonly string[];
  /** What the question for its newest version looks like. */
  readonly question: RegExp;
  readonly flags?: readonly string[];
}

async function repeats({ target, pinned, asked, question, flags = [] }: Repeated): Promise<void> {
  const first = await ran(target, '--name', 'one', ...flags);
  expect(first.stderr).toMatch(/Building|Fetching/);
  const before = asked().length;
  expect(asked().filter((one) => !question.test(one))).not.toEqual([]);
  const second = await ran(target, '--name', 'two', ...flags);
  expect(second.stderr).not.toMatch(/Building|Fetching|Pulling/);
  expect(
    asked()
      .slice(before)
      .filter((one) => !question.test(one)),
  ).toEqual([]);
  const told = asked().length;
  const third = await ran(pinned, '--name', 'three', ...flags);
  expect(third.stderr).not.toMatch(/Building|Fetching|Pulling/);
  expect(asked().slice(told)).toEqual([]);
  expect([imageOf('two'), imageOf('three')]).toEqual([imageOf('one'), imageOf('one')]);
}

const unique = (): string => `skep-test-second-${randomBytes(3).toString('hex')}`;
const urls = (requests: readonly { readonly url: string }[]): readonly string[] =>
  requests.map(({ url }) => url);

describe.skipIf(!sandboxThere.available)(title('in the sandbox, a second run', sandboxThere), () => {
  test('of an npm package asks for its versions alone, and for nothing where it names one', async () => {
    const name = unique();
    await using registry = await npmRegistryWith(name, MOODY_SERVER);
    user = openUser({ SKEP_RUNTIME: 'sandbox', npm_config_registry: registry.url });
    const [target, asked] = [`npx://${name}`, () => urls(registry.requests)];
    await repeats({ target, pinned: `${target}@1.0.0`, asked, question: new RegExp(`^/${name}$`) });
  });

  test.skipIf(!pythonThere.available)(title('of a Python package does too', pythonThere), async () => {
    const name = unique();
    await using index = await pythonIndexOf([pythonServer(name)]);
    user = openUser({ SKEP_RUNTIME: 'sandbox', PIP_INDEX_URL: index.url });
    const [target, asked] = [`uvx://${name}`, () => urls(index.requests)];
    await repeats({ target, pinned: `${target}@1.0.0`, asked, question: new RegExp(`/${name}/$`) });
  });

  // Whoever builds with Go first compiles its library.
  const compiling = { timeout: 300_000 };
  test.skipIf(!goThere.available)(title('of a Go package does too', goThere), compiling, async () => {
    const module = `example.test/${unique()}`;
    await using proxy = await moduleProxyOf([{ path: module, files: { 'main.go': GO_SERVER } }]);
    user = openUser({ SKEP_RUNTIME: 'sandbox', GOPROXY: proxy.url, GONOSUMDB: '*' });
    const question = /\/@(?:latest|v\/list|v\/[^/]+\.(?:info|mod))$/;
    await repeats({
      target: `go://${module}`,
      pinned: `go://${module}@v1.0.0`,
      asked: () => proxy.requests,
      question,
    });
  });
});

describe.skipIf(!engineThere.available)(title('on an engine, a second run', engineThere), () => {
  test('of an npm package builds nothing, and asks as in the sandbox', async () => {
    const name = unique();
    await using registry = await npmRegistryWith(name, MOODY_SERVER, { host: await bridgeAddress() });
    user = openUser({ SKEP_RUNTIME: 'docker', npm_config_registry: registry.url });
    const flags = ['--runtime-image', await ensureNodeBase('skep-test/node:second')];
    const [target, asked] = [`npx://${name}`, () => urls(registry.requests)];
    await repeats({ target, pinned: `${target}@1.0.0`, asked, question: new RegExp(`^/${name}$`), flags });
    await user.skep(['rm', '--all', '--yes']);
    expect(await builtBy(user)).toEqual([]);
  });
});
