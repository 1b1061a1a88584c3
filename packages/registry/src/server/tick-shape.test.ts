import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

/** Prints by how much a tick costs more after collections that found no tick waiting. */
const MEASURE = `
  const { holdTickShape } = await import(${JSON.stringify(new URL('tick-shape.ts', import.meta.url).href)});
  const loop = () => new Promise((done) => setImmediate(done));
  const TICKS = 10_000;
  async function cost() {
    let least = Infinity;
    for (let round = 0; round < 40; round += 1) {
      await loop();
      const before = process.cpuUsage();
      for (let tick = 0; tick < TICKS; tick += 1) process.nextTick(() => undefined);
      const { user, system } = process.cpuUsage(before);
      least = Math.min(least, user + system);
    }
    return least;
  }
  const release = holdTickShape();
  const before = await cost();
  for (let time = 0; time < 4; time += 1) {
    await loop();
    gc({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  }
  console.log((await cost()) / before);
  release();
`;

test('a tick costs the same after collections that find none waiting', async () => {
  const args = ['--expose-gc', '--input-type=module', '--eval', MEASURE];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  expect(Number(stdout)).toBeGreaterThan(0);
  expect(Number(stdout)).toBeLessThan(3);
});
