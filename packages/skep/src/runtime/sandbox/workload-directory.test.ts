import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { STDIO_SPEC } from '../doubles/stdio-spec.ts';
import { Spares } from '../spares.ts';
import type { Bubblewrap } from './confine.ts';
import { removeFiles } from './own-directories.ts';
import { environmentIn } from './environment.fixture.ts';
import { workloadPlaces, workloadsDirectory } from './places.ts';
import { WorkloadDirectories } from './workload-directory.ts';

test.skipIf(process.platform !== 'linux')(
  'what was made ahead and cannot be looked at is ended, and the next one is made without it',
  async () => {
    const home = await mkdtemp(path.join(tmpdir(), 'skep-ahead-'));
    onTestFinished(() => removeFiles(home));
    /** Nothing of the machine is changed. */
    const program = async (name: string, script: string): Promise<string> => {
      const file = path.join(home, name);
      await writeFile(file, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
      return file;
    };
    const ended = path.join(home, 'ended');
    const network = {
      unshare: await program('unshare', `echo ready; read -r _; : >${ended}`),
      nsenter: '/does/not/exist',
      ip: '/does/not/exist',
      slirp: { program: await program('slirp4netns', 'echo 1 >&3') },
    };
    const spares = new Spares();
    onTestFinished(() => spares.close());
    const environment = environmentIn(home, { spares });
    const bubblewrap = { inherited: [], setpriv: undefined, network } as unknown as Bubblewrap;
    const directories = new WorkloadDirectories(environment, bubblewrap);
    const root = workloadsDirectory(environment);
    await directories.make({ ...STDIO_SPEC, name: 'first' });
    await directories.makeSpare();
    const [spare = ''] = (await readdir(root)).filter((name) => name.startsWith('.'));
    // A pipe that cannot be read is as good as one that cannot be opened.
    const { gate } = workloadPlaces(path.join(root, spare));
    await rm(gate);
    await mkdir(gate);
    await directories.make({ ...STDIO_SPEC, name: 'second' });
    expect(await readdir(root)).toEqual(['first', 'second']);
    expect(await readFile(workloadPlaces(path.join(root, 'second')).spec, 'utf8')).toContain('"second"');
    expect(directories.take('second')).toBeUndefined();
    await vi.waitFor(() => expect(existsSync(ended)).toBe(true));
  },
);
