import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { guarded } from './guard.ts';
import { identify } from './linux-process.ts';
import { workloadPlaces } from './places.ts';

test.skipIf(process.platform !== 'linux')(
  'a server that keeps too much when it starts does not write for a second more',
  async () => {
    const places = workloadPlaces(await mkdtemp(path.join(tmpdir(), 'skep-guard-')));
    onTestFinished(() => rm(places.directory, { recursive: true }));
    await writeFile(path.join(places.directory, 'kept'), Buffer.alloc(2 * 1024 ** 2, 'x'));
    const child = spawn('sleep', ['60']);
    onTestFinished(() => void child.kill());
    const init = await identify(child.pid ?? 0);
    if (init === undefined) throw new TypeError('sleep does not run');
    const limits = { memory: 0, pids: 0, cpus: 0, disk: 1024 ** 2 };
    const volumes = [{ volume: 'notes', target: '/notes', readOnly: false }];
    const late = AbortSignal.timeout(950);
    await guarded({ places, limits, init, volumes, keeps: [places.directory] }, late, async () => {
      await once(child, 'exit', { signal: late }).catch(() => {});
    });
    expect(child.signalCode).toBe('SIGKILL');
    expect(await readFile(places.log, 'utf8')).toBe(
      'skep: the server was ended because it used more than 1 MiB of disk (--disk), counting what lies in shared volumes: notes\n',
    );
  },
);
