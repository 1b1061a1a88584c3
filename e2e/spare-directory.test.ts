import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { ProbeCaller } from '@skep/cli/runtime/contract/probe-caller.ts';
import { detectRuntime } from '@skep/cli/runtime/detect.ts';
import { findProgram } from '@skep/cli/runtime/find-program.ts';
import type { Runtime, WorkloadSpec } from '@skep/cli/runtime/runtime.ts';
import { Spares } from '@skep/cli/runtime/spares.ts';
import { freePort } from './fixtures/free-port.ts';
import { probePackage } from './fixtures/probe-package.ts';
import { component, title } from './require.ts';
import { testEnvironment } from './runtimes.ts';

const needed = [await component('sandbox'), await component('slirp')];

describe.skipIf(needed.some((one) => !one.available))(
  title('what is made ahead of the next sandbox', ...needed),
  () => {
    let directory: string;
    let dataDir: string;
    let spares: Spares;
    let ip: string;
    let env: NodeJS.ProcessEnv;
    let runtime: Runtime;
    let reference: string;
    beforeEach(async () => {
      directory = mkdtempSync(path.join(tmpdir(), 'skep-spare-'));
      dataDir = path.join(directory, 'data');
      const cacheDir = path.join(directory, 'cache');
      reference = probePackage(cacheDir);
      spares = new Spares();
      // By a name of its own for ip(8) the holder of each network is found, which knows nothing else of this test.
      ip = path.join(directory, 'bin', 'ip');
      mkdirSync(path.dirname(ip));
      symlinkSync(findProgram('ip', process.env) ?? '', ip);
      env = { ...process.env, PATH: `${path.dirname(ip)}:${process.env['PATH'] ?? ''}` };
      runtime = await detectRuntime(
        { ...testEnvironment({ dataDir, cacheDir }), env, spares },
        { kind: 'sandbox' },
      );
    });
    afterEach(async () => {
      for (const { name } of await runtime.list()) await runtime.remove(name);
      await spares.close();
      await expect.poll(processes, { timeout: 10_000 }).toEqual([]);
      expect(existsSync(path.join(dataDir, 'sandbox')) ? directories() : []).toEqual([]);
      rmSync(directory, { recursive: true });
    });

    const directories = () => readdirSync(path.join(dataDir, 'sandbox'));
    const ahead = () => directories().filter((name) => name.startsWith('.'));
    const inode = (name: string) => statSync(path.join(dataDir, 'sandbox', name)).ino;

    function processesThat(fits: (place: string) => boolean): readonly number[] {
      const there = (pid: string): boolean => {
        try {
          return fits(`/proc/${pid}`);
        } catch {
          // Ended meanwhile.
          return false;
        }
      };
      return readdirSync('/proc')
        .filter((name) => /^\d+$/.test(name) && there(name))
        .map(Number);
    }

    /** Those that hold a network. */
    const holders = () =>
      processesThat((place) => readFileSync(`${place}/cmdline`, 'utf8').split('\0').includes(ip));

    /** With those that connect one: they work where the workload lies. */
    const processes = () => [
      ...processesThat((place) => readlinkSync(`${place}/cwd`).startsWith(directory)),
      ...holders(),
    ];

    const log = (name: string) => readFileSync(path.join(dataDir, 'sandbox', name, 'output.log'), 'utf8');

    const spec = (name: string, more: Partial<WorkloadSpec> = {}): WorkloadSpec => {
      const nothing = { args: [], env: {}, labels: {}, mounts: [], ports: [] };
      return { name, reference, ...nothing, stdio: true, network: 'bridge', privileged: false, ...more };
    };

    async function run(wanted: WorkloadSpec): Promise<ProbeCaller> {
      await runtime.create(wanted);
      const probe = new ProbeCaller(await runtime.attach(wanted.name));
      await runtime.start(wanted.name);
      await probe.call('ping');
      return probe;
    }

    test('is what the next one becomes: with its directory, connected, its ports led to it', async () => {
      await runtime.makeSpare?.();
      expect(existsSync(path.join(dataDir, 'sandbox'))).toBe(false);
      await run(spec('first'));
      await runtime.makeSpare?.();
      const [made = ''] = ahead();
      const was = inode(made);
      await expect.poll(holders).toHaveLength(1);
      const hostPort = await freePort();
      const port = { hostIp: '127.0.0.1', hostPort, containerPort: await freePort() };
      const probe = await run(spec('second', { ports: [port] }));
      expect(inode('second')).toBe(was);
      expect(ahead()).toEqual([]);
      await probe.call('probe/serve', { port: port.containerPort, host: '127.0.0.1' });
      expect(await (await fetch(`http://127.0.0.1:${hostPort}`)).text()).not.toBe('');
      // It can be ended and started again like any other.
      await runtime.stop('second', 1000);
      await runtime.start('second');
    });

    test('is there for whoever starts the next server of a package, which alone may see it', async () => {
      const ready = path.join(dataDir, 'ready', reference);
      await runtime.keepReady?.(reference);
      const { ino } = statSync(ready);
      // As a program that has made nothing itself.
      const cacheDir = path.join(directory, 'cache');
      const other = await detectRuntime(
        { ...testEnvironment({ dataDir, cacheDir }), env },
        { kind: 'sandbox' },
      );
      await other.create(spec('first'));
      expect([inode('first'), existsSync(ready)]).toEqual([ino, false]);
      const probe = new ProbeCaller(await other.attach('first'));
      await other.start('first');
      const file = '/app/node_modules/skep-probe/server.mjs';
      await probe.call('probe/append', { path: file, text: '// written' });
      await other.keepReady?.(reference);
      await run(spec('second'));
      const code = (name: string) =>
        readFileSync(path.join(dataDir, 'sandbox', name, 'state/package/server.mjs'), 'utf8');
      expect(code('first')).toMatch(/\/\/ written$/);
      expect(code('second')).not.toContain('// written');
      // It has its log, its end, and another start, like any other.
      await other.stop('first', 1000);
      await other.start('first');
      await other.remove('first');
      await other.remove('second');
      await other.keepReady?.(reference);
      await other.discard(reference);
      expect(existsSync(path.join(dataDir, 'ready'))).toBe(false);
    });

    test('has a copy of the package that runs, which the next server of it, and no other, may see', async () => {
      const folder = (name: string) => path.join(dataDir, 'sandbox', name, 'state/package');
      const first = await run(spec('first'));
      await runtime.makeSpare?.();
      const { ino } = statSync(folder(ahead()[0] ?? ''));
      const probe = await run(spec('second'));
      expect(statSync(folder('second')).ino).toBe(ino);
      const file = '/app/node_modules/skep-probe/server.mjs';
      await probe.call('probe/append', { path: file, text: '// written' });
      expect(readFileSync(path.join(folder('second'), 'server.mjs'), 'utf8')).toMatch(/\/\/ written$/);
      expect(readFileSync(path.join(folder('first'), 'server.mjs'), 'utf8')).not.toContain('// written');
      await runtime.makeSpare?.();
      expect(JSON.stringify(await first.call('probe/list', { path: '/app' }))).not.toContain('copy');
      await run(spec('third', { network: 'none' }));
      expect(existsSync(path.join(folder('third'), 'server.mjs'))).toBe(true);
    });

    /** What writes the log of the one that is ready, by the directory that it works in. */
    function keeperAhead(): number {
      const [made, ...more] = ahead();
      if (made === undefined || more.length > 0) throw new Error('there is to be one');
      const [keeper, ...others] = processesThat(
        (place) =>
          readFileSync(`${place}/cmdline`, 'utf8').split('\0').includes('skep-log') &&
          readlinkSync(`${place}/cwd`) === path.join(dataDir, 'sandbox', made),
      );
      if (keeper === undefined || others.length > 0) throw new Error('it is to have one keeper');
      return keeper;
    }

    async function expectLogged(name: string): Promise<void> {
      const probe = await run(spec(name));
      await probe.call('probe/append', { path: '/proc/self/fd/2', text: `said by ${name}` });
      await expect.poll(() => log(name)).toContain(`said by ${name}`);
    }

    test('writes down what the server says', async () => {
      await run(spec('first'));
      await runtime.makeSpare?.();
      const keeper = keeperAhead();
      await expectLogged('second');
      expect(readlinkSync(`/proc/${keeper}/cwd`)).toBe(path.join(dataDir, 'sandbox', 'second'));
    });

    test('is not used once what would write its log has ended', async () => {
      await run(spec('first'));
      await runtime.makeSpare?.();
      const keeper = keeperAhead();
      const [made = ''] = ahead();
      const was = inode(made);
      // As long as it is open no other file gets its number.
      const held = openSync(path.join(dataDir, 'sandbox', made), 'r');
      onTestFinished(() => closeSync(held));
      // With all of its session.
      process.kill(-keeper, 'SIGKILL');
      await expect.poll(() => existsSync(`/proc/${keeper}`)).toBe(false);
      await expectLogged('second');
      expect(inode('second')).not.toBe(was);
    });

    test('is of no use to a server without such a network', async () => {
      await run(spec('first'));
      await runtime.makeSpare?.();
      await run(spec('second', { network: 'none' }));
      expect(ahead()).toHaveLength(1);
    });

    test('is not used once its directory is gone or its network has ended', async () => {
      await run(spec('first'));
      await runtime.makeSpare?.();
      rmSync(path.join(dataDir, 'sandbox', ahead()[0] ?? ''), { recursive: true });
      await run(spec('second'));
      await runtime.makeSpare?.();
      await runtime.sweep();
      await run(spec('third'));
    });

    test('goes with a workload that is removed before it has started', async () => {
      await run(spec('first'));
      await runtime.makeSpare?.();
      await runtime.create(spec('second'));
      await runtime.remove('second');
      await runtime.remove('first');
      await expect.poll(processes, { timeout: 10_000 }).toEqual([]);
    });

    test('ends with a process that is killed, and its directory goes with the next start', async () => {
      await run(spec('first'));
      const cacheDir = path.join(directory, 'cache');
      const script = path.join(import.meta.dirname, 'fixtures/spare-holder.ts');
      const holder = spawn(process.execPath, [script, dataDir, cacheDir, JSON.stringify(spec('held'))], {
        env,
      });
      await once(holder.stdout, 'data');
      expect(ahead()).toHaveLength(1);
      expect(holders().length).toBeGreaterThan(0);
      holder.kill('SIGKILL');
      await once(holder, 'exit');
      await run(spec('second'));
      expect(ahead()).toEqual([]);
    });
  },
);
