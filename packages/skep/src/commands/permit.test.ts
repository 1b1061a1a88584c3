import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  commandUnderTest,
  openCommandUnderTest,
  type CommandUnderTest,
} from '../command-under-test.fixture.ts';
import { MemoryRuntime } from '../runtime/doubles/memory-runtime.ts';
import { idle } from '../runtime/doubles/program.ts';
import { loadRunConfig } from '../run-config/file.ts';

const FILES = {
  'profile.json': { network: { outbound: { allow_host: ['b.example'], allow_port: [443] } } },
  'notes/a': '',
};
const ISOLATED = 'run fake:1 --name a1 --isolate-network --permission-profile ./profile.json';

const hostsOf = (skep: CommandUnderTest): readonly string[] | undefined =>
  skep.runtime.specOf('a1')?.isolation?.hosts;

describe('skep permit', () => {
  test('starts a server again with the host, and says what is different now', async () => {
    const skep = await commandUnderTest({ files: FILES });
    await skep.output(ISOLATED);
    const { status, out, err } = await skep.run('permit a1 10.1.2.3:8443');
    expect({ status, out, err }).toEqual({
      status: 0,
      out: expect.stringMatching(
        /^Network: b\.example:443, b\.example:8443, 10\.1\.2\.3:443, 10\.1\.2\.3:8443; never .*\n$/,
      ),
      err: expect.stringContaining(
        'port 8443 is open for b.example too, because a profile lists hosts and ports apart\na1 was started again\n',
      ),
    });
    expect(hostsOf(skep)).toEqual(['b.example', '10.1.2.3']);
    expect((await skep.runtime.inspect('a1'))?.state).toBe('running');
  });

  test('changes nothing a second time', async () => {
    const skep = await commandUnderTest({ files: FILES });
    await skep.output(ISOLATED);
    await skep.output('permit a1 10.1.2.3:443');
    const before = skep.runtime.startsOf('a1');
    const { status, out, err } = await skep.run('permit a1 10.1.2.3:443');
    expect({ status, out, err }).toEqual({
      status: 0,
      out: '',
      err: 'a1 may connect to 10.1.2.3 at port 443 already\n',
    });
    expect(skep.runtime.startsOf('a1')).toBe(before);
  });

  test('takes several rights, all of them or none', async () => {
    const skep = await commandUnderTest({ files: FILES });
    await skep.output(ISOLATED);
    await skep.output('permit a1 10.1.2.3:443 ./notes');
    expect(await loadRunConfig(skep.places, 'a1')).toMatchObject({
      permission_profile: {
        read: [`${skep.cwd}/notes:${skep.cwd}/notes`],
        network: { outbound: { allow_host: ['b.example', '10.1.2.3'] } },
      },
      mount_sources: { [`${skep.cwd}/notes`]: expect.stringContaining('notes') },
    });
    await skep.refusal('permit a1 10.9.9.9:443 169.254.169.254:80');
    expect(hostsOf(skep)).toEqual(['b.example', '10.1.2.3']);
  });

  test('leaves a server running with --no-restart, and one that is stopped stopped', async () => {
    const skep = await commandUnderTest({ files: FILES });
    await skep.output(ISOLATED);
    const later = await skep.run('permit a1 10.1.2.3:443 --no-restart');
    expect(later.err).toBe('it counts when a1 is started again: skep stop a1 && skep start a1\n');
    expect(hostsOf(skep)).toEqual(['b.example']);
    await skep.output('stop a1');
    expect((await skep.run('permit a1 ./notes')).err).toBe('it counts when a1 is started: skep start a1\n');
    await skep.output('start a1');
    expect(hostsOf(skep)).toEqual(['b.example', '10.1.2.3']);
    expect(skep.runtime.specOf('a1')?.mounts).toHaveLength(1);
  });

  test('gives a server without a network exactly the host, isolated', async () => {
    const skep = await commandUnderTest();
    await skep.output('run fake:1 --name a1 --permission-profile none');
    expect(skep.runtime.specOf('a1')).toMatchObject({ network: 'none' });
    await skep.output('permit a1 10.1.2.3:443');
    expect(skep.runtime.specOf('a1')).toMatchObject({
      network: 'bridge',
      isolation: { allowAll: false, hosts: ['10.1.2.3'], ports: [443] },
    });
  });

  test('leaves what ran running where it does not start with it', async () => {
    const runtime = new MemoryRuntime({ 'fake:1': idle });
    const skep = await commandUnderTest({ files: FILES, runtime });
    await skep.output(ISOLATED);
    runtime.refuses = ({ isolation }) => isolation?.hosts.includes('10.1.2.3') === true;
    const said = await skep.refusal('permit a1 10.1.2.3:443');
    expect(said).toContain('a1 runs as before, because it did not start with what was permitted\nError: ');
    expect(hostsOf(skep)).toEqual(['b.example']);
    expect((await skep.runtime.inspect('a1'))?.state).toBe('running');
    expect(await loadRunConfig(skep.places, 'a1')).toMatchObject({
      permission_profile: { network: { outbound: { allow_host: ['b.example'] } } },
    });
  });

  test('remembers where a link leads to, and hides what is to stay hidden', async () => {
    const skep = await commandUnderTest({ files: FILES });
    await skep.output(ISOLATED);
    await symlink(join(skep.cwd, 'notes'), join(skep.cwd, 'link'));
    await skep.output('permit a1 ./link');
    const { mount_sources } = await loadRunConfig(skep.places, 'a1');
    expect(mount_sources?.[join(skep.cwd, 'link')]).toMatch(/\/notes$/);
  });
});

describe('skep deny', () => {
  test('is undone by permit, and undoes it', async () => {
    const skep = await commandUnderTest({ files: FILES });
    await skep.output(ISOLATED);
    const before = await loadRunConfig(skep.places, 'a1');
    await skep.output('permit a1 10.1.2.3:443 ./notes:rw');
    await skep.output('deny a1 10.1.2.3:443 ./notes');
    expect(await loadRunConfig(skep.places, 'a1')).toMatchObject({
      permission_profile: {
        read: [],
        write: [],
        network: { outbound: { allow_host: ['b.example'], allow_port: [443] } },
      },
    });
    expect(hostsOf(skep)).toEqual(['b.example']);
    await skep.output('deny a1 b.example');
    expect(skep.runtime.specOf('a1')?.isolation).toMatchObject({ hosts: [], ports: [] });
    await skep.output('permit a1 b.example:443');
    expect((await loadRunConfig(skep.places, 'a1')).permission_profile.network?.outbound).toMatchObject(
      before.permission_profile.network?.outbound ?? {},
    );
  });

  test('of a volume leaves a configuration that can be exported and imported', async () => {
    const skep = await commandUnderTest({ files: FILES });
    await skep.output('run fake:1 --name a1 -v ./notes:/notes:ro');
    await skep.output('deny a1 ./notes');
    await skep.output('export a1 a1.json');
    await skep.output('rm a1');
    await skep.output('run --from-config a1.json');
    expect(skep.runtime.specOf('a1')?.mounts).toEqual([]);
  });
});

test('an undone upgrade gives back no right that was taken away since', async () => {
  const runtime = new MemoryRuntime({ fake: idle, 'fake@1.0.0': idle, 'fake@2.0.0': idle });
  runtime.versions.set('fake', '1.0.0');
  const skep = await commandUnderTest({ files: FILES, runtime });
  await skep.output(
    'run npx://fake --name a1 --isolate-network --permission-profile ./profile.json -v ./notes:/notes:ro',
  );
  runtime.versions.set('fake', '2.0.0');
  await skep.output('upgrade a1 --yes');
  await skep.output('deny a1 b.example ./notes');
  await skep.output('upgrade a1 --undo');
  expect(runtime.specOf('a1')).toMatchObject({
    reference: 'fake@1.0.0',
    mounts: [],
    isolation: { allowAll: false, hosts: [], ports: [] },
  });
});

describe('what cannot be', () => {
  let skep: CommandUnderTest;
  beforeAll(async () => {
    skep = await openCommandUnderTest({ files: FILES });
    await skep.output(ISOLATED);
    await skep.output('run fake:1 --name open');
    await skep.write('hiding/x', '');
    await symlink('x', join(skep.cwd, 'hiding/.skepignore'));
  });
  afterAll(() => skep.close());

  test.each([
    ['permit', 'missing argument NAME'],
    ['permit a1', 'missing argument HOST[:PORT]|PATH'],
    ['permit nobody x.com', 'workload "nobody" not found; see the names with skep list --all'],
    ['permit a/b x.com', 'invalid workload name "a/b"'],
    [
      'permit a1 *.x.com',
      'invalid value "*.x.com": it is a wildcard; write ".x.com" for x.com and all below it',
    ],
    ['permit a1 ./nowhere', 'volume source path does not exist: "WORK/nowhere"'],
    ['permit a1 ./hiding', '"WORK/hiding/.skepignore" is a link'],
    ['permit a1 127.0.0.1:22', '127.0.0.1 is a host that no permission profile opens'],
    [
      'deny open x.com',
      'open is not isolated, so nothing keeps it from x.com; isolate it first: skep deny open --isolate-network',
    ],
    ['deny a1 ./notes:ro:rw', 'invalid value "./notes:ro:rw": a path has no colon'],
    ['permit --group a1 x.com', 'unknown flag "--group"'],
  ])('%s is refused', async (line, message) => {
    expect(await skep.refusal(line)).toContain(`Error: ${message}`);
  });

  test('nothing that a person types steers the terminal', async () => {
    const said = await skep.refusal(['permit', 'a1', 'a\u001B[31mb.com']);
    expect(said).not.toContain('\u001B');
  });
});

describe('skep deny --isolate-network', () => {
  test('isolates a server that was not, which connects only to what its profile allows from then on', async () => {
    const skep = await commandUnderTest({ files: FILES });
    await skep.output('run fake:1 --name a1 --permission-profile ./profile.json');
    expect(skep.runtime.specOf('a1')?.isolation).toBeUndefined();
    const { status, out, err } = await skep.run('deny a1 --isolate-network');
    expect({ status, out, err }).toEqual({
      status: 0,
      out: expect.stringMatching(/^Network: b\.example:443; never /m),
      err: expect.stringContaining('a1 was started again\n'),
    });
    expect(skep.runtime.specOf('a1')?.isolation).toMatchObject({ allowAll: false, hosts: ['b.example'] });
    expect(await loadRunConfig(skep.places, 'a1')).toMatchObject({ isolate_network: true });
    expect(await skep.run('deny a1 --isolate-network')).toMatchObject({
      out: '',
      err: 'a1 is isolated already\n',
    });
  });

  test('goes together with what else is taken away', async () => {
    const skep = await commandUnderTest({ files: FILES });
    await skep.output('run fake:1 --name a1 --permission-profile ./profile.json');
    await skep.output('deny a1 --isolate-network b.example');
    expect(hostsOf(skep)).toEqual([]);
  });

  test('is refused where nothing can be isolated, and nothing is taken away by saying nothing', async () => {
    const skep = await commandUnderTest({ files: FILES });
    await skep.output('run fake:1 --name a1 --network host');
    expect(await skep.refusal('deny a1 --isolate-network')).toBe(
      'Error: a1 is on the network "host", on which nothing can be isolated; run it again without that network: skep rm a1, which keeps its data, and skep run\n',
    );
    expect(await skep.refusal('deny a1')).toBe(
      'Error: missing argument HOST[:PORT]|PATH; name what to take away, or give --isolate-network\n',
    );
    await skep.output('run fake:1 --name shut --permission-profile none');
    expect(await skep.run('deny shut --isolate-network')).toMatchObject({
      err: 'shut has no network anyway\n',
    });
  });
});
