import { execFileSync } from 'node:child_process';
import { readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { expect, test, vi } from 'vitest';
import { privateEngine } from './fixtures/private-engine.ts';
import { TINY_SERVER } from './fixtures/tiny-server.ts';
import { ensureTinyImage } from './images.ts';
import { processes } from './processes.ts';
import { component, title } from './require.ts';

const shimsOf = (directory: string) =>
  processes().filter(
    ({ command }) => command.includes('containerd-shim') && command.includes(`${directory}/`),
  );

const ours = await component('private-engine');

test.skipIf(!ours.available)(
  title('a private engine leaves no process, also of a container that it forgot when it was killed', ours),
  async () => {
    const engine = privateEngine();
    const directory = path.dirname(engine.socket);
    let holders: readonly number[] = [];
    try {
      await engine.start();
      vi.stubEnv('DOCKER_HOST', `unix://${engine.socket}`);
      const image = await ensureTinyImage(TINY_SERVER);
      const id = execFileSync('docker', ['run', '-d', image, 'mute'], { encoding: 'utf8' }).trim();
      const top = execFileSync('docker', ['inspect', '--format', '{{.State.Pid}}', id], { encoding: 'utf8' });
      holders = [Number(top)];
      expect(shimsOf(directory)).toHaveLength(1);
      await engine.kill();
      // As where it was killed before it had written that there is one.
      for (const forgotten of ['data/containers', 'data/containerd/daemon', 'exec/containerd/daemon'])
        rmSync(path.join(directory, forgotten), { recursive: true, force: true });
    } finally {
      vi.unstubAllEnvs();
      await engine.end();
    }
    expect(shimsOf(directory)).toEqual([]);
    expect(holders.filter((pid) => processes().some((one) => one.pid === pid && one.command !== ''))).toEqual(
      [],
    );
    expect(readdirSync(path.dirname(directory))).not.toContain(path.basename(directory));
  },
);
