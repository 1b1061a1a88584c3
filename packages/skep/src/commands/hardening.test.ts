import { chown, mkdir } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { commandUnderTest, type CommandUnderTest } from '../command-under-test.fixture.ts';
import type { MemoryRuntime } from '../runtime/doubles/memory-runtime.ts';
import type { WorkloadSpec } from '../runtime/runtime.ts';
import { loadRunConfig } from '../run-config/file.ts';

const EROFS = "Error: EROFS: read-only file system, open '/app/state.json'\n";
const EACCES = "Error: EACCES: permission denied, open '/srv/key'\n";

/** A server that writes beside its code before it answers. */
function writes({ readOnly }: WorkloadSpec) {
  return readOnly === true ? { exitCode: 1, says: EROFS } : undefined;
}
/** One that reads what only root may. */
function readsAsRoot({ user }: WorkloadSpec) {
  return user === undefined ? undefined : { exitCode: 1, says: EACCES };
}

async function machine(
  crashOf: MemoryRuntime['crashOf'] = () => undefined,
  supervisor: 'up' | 'asked' = 'up',
  asRoot = true,
): Promise<CommandUnderTest> {
  const skep = await commandUnderTest({ supervisor });
  Object.assign(skep.runtime, { asRoot, crashOf });
  return skep;
}

const how = async (skep: CommandUnderTest, name = 'a1') => {
  const { readOnly, user } = skep.runtime.specOf(name) ?? {};
  const { hardening } = await loadRunConfig(skep.places, name);
  return { readOnly: readOnly === true, other: user !== undefined, hardening };
};

// By the supervisor, and by the command itself.
describe.each(['up', 'asked'] as const)('an image that says root (supervisor %s)', (supervisor) => {
  test('starts with its own files read-only, as a user that owns nothing', async () => {
    const skep = await machine(undefined, supervisor);
    const { err } = await skep.run('run fake:1 --name a1');
    expect(await how(skep)).toEqual({ readOnly: true, other: true, hardening: 'other-user' });
    expect(skep.runtime.specOf('a1')?.user).toMatch(/^(60[7-9]|61[01])\d\d:\d+$/);
    expect(err).toMatch(/^ +Own Files: +read-only in a container$/m);
    expect(err).toMatch(/^ +Runs As: +an ordinary user, where its image says root$/m);
    expect(err).not.toContain('Warning: a1');
  });

  test('keeps its user where it shares a volume, which others write as theirs', async () => {
    const skep = await machine(undefined, supervisor);
    await skep.output('run fake:1 --name a1 -v volume://notes:/notes');
    expect(await how(skep)).toEqual({ readOnly: true, other: false, hardening: 'read-only' });
  });

  test('and a server that reads as root starts as root at the second try, which is told and kept', async () => {
    const skep = await machine(readsAsRoot, supervisor);
    const { err } = await skep.run('run fake:1 --name a1');
    expect(err).toContain(
      'Warning: a1 does not start as an ordinary user, so it is started as the root of its image\n',
    );
    expect(err).toMatch(/^ +Own Files: +read-only in a container$/m);
    expect(err).not.toContain('Runs As:');
    expect(await how(skep)).toEqual({ readOnly: true, other: false, hardening: 'read-only' });
  });

  test('and a server that writes its own files starts with them writable, which the card says', async () => {
    const skep = await machine(writes, supervisor);
    const { err, status } = await skep.run('run fake:1 --name a1');
    expect(status).toBe(0);
    expect(err).toContain(
      'Warning: a1 does not start with its own files read-only, so it is started with what its image says\n',
    );
    expect(err).toMatch(/^ +Own Files: +writable, because it does not start otherwise$/m);
    expect(await skep.output('status a1')).toMatch(
      /^Own Files: +writable, because it does not start otherwise$/m,
    );
    expect(await how(skep)).toEqual({ readOnly: false, other: false, hardening: 'none' });
    // Once that is known it is started once.
    await skep.output('stop a1');
    const again = await skep.run('start a1');
    expect(again.err).not.toContain('Warning: a1');
    expect(skep.runtime.startsOf('a1')).toBe(2);
  });
});

test('a server that fails for another reason is not tried again', async () => {
  const skep = await machine(() => ({ exitCode: 1, says: 'Error: API_KEY is not set\n' }));
  const { status, err } = await skep.run('run fake:1 --name a1');
  expect(status).toBe(1);
  expect(err).not.toContain('Warning: a1');
  expect((await skep.left()).saved).toEqual([]);
});

test('a server that fails however it is held is refused once it was tried as its image says, and leaves nothing', async () => {
  const skep = await machine(() => ({ exitCode: 1, says: EROFS }));
  const { status, err } = await skep.run('run fake:1 --name a1');
  expect(status).toBe(1);
  expect(err.match(/Warning: a1/g)).toHaveLength(1);
  expect(await skep.left()).toEqual({ saved: [], statuses: [], workloads: [] });
});

test('a restart after a crash is held as the start that worked', async () => {
  const skep = await machine(writes);
  await skep.output('run fake:1 --name a1');
  await skep.killSupervisor();
  await skep.startSupervisor();
  expect(await how(skep)).toEqual({ readOnly: false, other: false, hardening: 'none' });
  expect(await skep.output('status a1')).toMatch(/^Status: +running$/m);
});

describe('the person’s word', () => {
  test('--read-only insists: what cannot start so is an error that names the flag', async () => {
    const skep = await machine(writes);
    const { status, err } = await skep.run('run fake:1 --name a1 --read-only');
    expect(status).toBe(1);
    expect(err).toContain(
      'if it needs to write /app/state.json in its container, run it with --read-only=false',
    );
    expect((await skep.left()).saved).toEqual([]);
  });

  test('--read-only=false tries nothing', async () => {
    const skep = await machine(writes);
    const { err } = await skep.run('run fake:1 --name a1 --read-only=false');
    expect(err).not.toContain('Warning: a1');
    expect(err).toMatch(/^ +Own Files: +writable in a container$/m);
    expect(await how(skep)).toEqual({ readOnly: false, other: false, hardening: undefined });
  });

  test('--sandbox-user names the user, who is not tried for another', async () => {
    const skep = await machine();
    await skep.output('run fake:1 --name a1 --sandbox-user root');
    expect(skep.runtime.specOf('a1')).toMatchObject({ user: 'root', readOnly: true });
    expect((await loadRunConfig(skep.places, 'a1')).hardening).toBe('read-only');
  });

  test('--no-check tries nothing, because nobody would see it fail', async () => {
    const skep = await machine();
    await skep.output('run fake:1 --name a1 --no-check');
    expect(await how(skep)).toEqual({ readOnly: false, other: false, hardening: undefined });
  });

  test('at a later start gives it its own files', async () => {
    const skep = await machine();
    await skep.output('run fake:1 --name a1');
    await skep.output('stop a1');
    skep.runtime.crashOf = (spec) =>
      spec.readOnly === true ? { exitCode: 1, says: 'fell over\n' } : undefined;
    await skep.output('start --read-only=false a1');
    expect(await how(skep)).toMatchObject({ readOnly: false, other: false });
  });
});

test('what a running server says of files that it cannot write comes with the line that opens them', async () => {
  const skep = await machine();
  await skep.output('run fake:1 --name a1');
  await skep.output('stop a1');
  const says = "tool failed: EROFS: read-only file system, open '/app/notes.json'\n";
  skep.runtime.crashOf = () => ({ exitCode: 3, says });
  await skep.run('start a1 --read-only');
  expect(await skep.output('status a1')).toContain(
    'to write /app/notes.json in its container – skep stop a1 && skep start --read-only=false a1\n',
  );
});

describe('an image of its own user', () => {
  test('keeps it, with its files read-only', async () => {
    const skep = await machine(undefined, 'up', false);
    await skep.output('run fake:1 --name a1');
    expect(await how(skep)).toEqual({ readOnly: true, other: false, hardening: 'read-only' });
  });
});

test.runIf(process.getuid?.() === 0)(
  'who writes a mount is its owner, and root where root owns it',
  async () => {
    const skep = await machine();
    const [theirs, roots] = [`${skep.cwd}/theirs`, `${skep.cwd}/roots`];
    for (const one of [theirs, roots]) await mkdir(one);
    await chown(theirs, 1234, 1234);
    await skep.output(`run fake:1 --name a1 -v ${theirs}:/data`);
    expect(skep.runtime.specOf('a1')?.user).toBe('1234:1234');
    await skep.output(`run fake:1 --name a2 -v ${roots}:/data`);
    expect(await how(skep, 'a2')).toEqual({ readOnly: true, other: false, hardening: 'read-only' });
    // A path that is granted later, too.
    await skep.output('run fake:1 --name a3');
    await skep.output(`permit a3 ${roots}:rw`);
    expect(await how(skep, 'a3')).toEqual({ readOnly: true, other: false, hardening: 'read-only' });
  },
);

test('an upgrade tries the new image anew', async () => {
  const skep = await machine(writes);
  await skep.output('run fake:1 --name a1');
  expect((await how(skep)).hardening).toBe('none');
  skep.runtime.crashOf = () => undefined;
  skep.runtime.outdated.add('a1');
  await skep.output('upgrade --yes a1');
  expect(await how(skep)).toEqual({ readOnly: true, other: true, hardening: 'other-user' });
});
