import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { runConformance } from './conformance/run.ts';
import { bundled } from './fixtures/bundled.ts';
import { npmRegistryWith } from './fixtures/npm-registry.ts';
import { conformanceOverHttp } from './fixtures/spawned-server.ts';
import { engine as askEngine, ensureScriptImage } from './images.ts';
import { component, title } from './require.ts';
import { openUser, type TestUser } from './skep.ts';

const engine = await component('engine');
const sandbox = await component('sandbox');
const IMAGE = 'skep-test/conformance:1';
const PACKAGE = 'skep-conformance-fixture';

async function directScores(): Promise<unknown> {
  using direct = await conformanceOverHttp();
  return Object.fromEntries(await runConformance(direct.url));
}

async function scoresBehindRun(user: TestUser, target: string): Promise<unknown> {
  const name = `conformance-${randomBytes(3).toString('hex')}`;
  try {
    const { code, stdout, stderr } = await user.skep(['run', target, '--name', name, '--', 'stdio']);
    expect(code, stderr).toBe(0);
    return Object.fromEntries(await runConformance(stdout.trim()));
  } finally {
    await user.end();
  }
}

describe.skipIf(!engine.available)(title('conformance behind skep run on an engine', engine), () => {
  test('equals the same server asked directly, scenario by scenario', async () => {
    await ensureScriptImage(IMAGE, await bundled('conformance-server.ts'));
    try {
      const through = await scoresBehindRun(openUser({ SKEP_RUNTIME: 'docker' }), IMAGE);
      expect(through).toEqual(await directScores());
    } finally {
      await askEngine('DELETE', `/images/${IMAGE}?force=1`);
    }
  });
});

describe.skipIf(!sandbox.available)(title('conformance behind skep run in the sandbox', sandbox), () => {
  test('equals the same server asked directly, scenario by scenario', async () => {
    await using registry = await npmRegistryWith(PACKAGE, await bundled('conformance-server.ts'));
    const user = openUser({ SKEP_RUNTIME: 'sandbox', npm_config_registry: registry.url });
    expect(await scoresBehindRun(user, `npx://${PACKAGE}`)).toEqual(await directScores());
  });
});
