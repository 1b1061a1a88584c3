import { expect, test } from 'vitest';
import { commandUnderTest, NOTHING_LEFT, type CommandUnderTest } from '../command-under-test.fixture.ts';
import { MemoryRuntime } from '../runtime/doubles/memory-runtime.ts';
import { idle } from '../runtime/doubles/program.ts';

const NPM = { registryType: 'npm', identifier: 'fake', version: '1.0.0', transport: { type: 'stdio' } };
const entry = (name: string, ...packages: object[]): object => ({
  name: `com.example/${name}`,
  version: '1.0.0',
  description: name,
  packages,
});
const TOKEN = { name: 'TOKEN', isRequired: true, isSecret: true };
const IMAGE = { registryType: 'oci', identifier: 'example/fake:1', transport: { type: 'stdio' } };
const PYPI = { ...NPM, registryType: 'pypi' };

/** A machine whose engine cannot reach its image registry, with a sandbox beside it. */
async function machine(sandbox = true): Promise<CommandUnderTest> {
  const runtime = new MemoryRuntime({});
  runtime.alone = true;
  return commandUnderTest({
    runtime,
    ...(sandbox ? { sandbox: new MemoryRuntime({ fake: idle }, 'sandbox') } : {}),
    catalogue: {
      servers: [
        entry('both', IMAGE, NPM),
        entry('image', IMAGE),
        entry('python', PYPI),
        entry('secret', { ...NPM, environmentVariables: [TOKEN] }),
      ].map((server) => ({ server })),
    },
  });
}

test.each(['npx://fake', 'uvx://fake', 'both', 'python'])(
  '%s runs in the sandbox instead, which is said',
  async (target) => {
    const skep = await machine();
    const { status, err } = await skep.run(`run ${target} --name a1`);
    expect(status).toBe(0);
    expect(err).toContain(
      'Warning: a1 runs in the sandbox, because the engine cannot reach its image registry (--runtime docker insists on the engine)\n',
    );
    expect(err).toMatch(/^ +Runs in: sandbox$/m);
    expect(await skep.left()).toMatchObject({ saved: ['a1'], workloads: [] });
  },
);

test.each([
  [
    'run npx://fake --runtime docker',
    'no such host; check the network, or run it without an image: --runtime sandbox\n',
  ],
  ['run image', 'no such host; check the network\n'],
  ['run image --runtime docker', 'no such host; check the network\n'],
])('"%s" fails with what helps: %s', async (line, message) => {
  const skep = await machine();
  const { status, err } = await skep.run(line);
  expect(status).toBe(1);
  expect(err.endsWith(`Error: ${message}`), err).toBe(true);
  expect(await skep.left()).toEqual(NOTHING_LEFT);
});

test('what was answered is not asked again', async () => {
  const skep = await machine();
  const { status } = await skep.run('run secret --name a1', { answers: { TOKEN: 'hush' } });
  expect([status, skep.asked]).toEqual([0, ['TOKEN']]);
});
