import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const ROOT = path.resolve(import.meta.dirname, '..');
const VITEST = path.join(ROOT, 'node_modules/vitest/vitest.mjs');

/** What vitest says of a file with this one test, watched by the check. */
function outcomeOf(body: string): { readonly status: number | null; readonly said: string } {
  const folder = mkdtempSync(path.join(ROOT, 'node_modules/.left-behind-'));
  try {
    writeFileSync(
      path.join(folder, 'one.test.ts'),
      `import { spawn } from 'node:child_process';
       import net from 'node:net';
       import { once } from 'node:events';
       import { test } from 'vitest';
       test('one', async () => { ${body} });`,
    );
    writeFileSync(
      path.join(folder, 'vitest.config.mjs'),
      `export default { test: { setupFiles: ['${path.join(import.meta.dirname, 'left-behind.ts')}'] } };`,
    );
    const { status, stdout, stderr } = spawnSync(process.execPath, [VITEST, 'run', '--root', folder], {
      encoding: 'utf8',
    });
    return { status, said: stdout + stderr };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test.each([
  ['a timer', 'setTimeout(() => {}, 60_000);', '1 × Timeout'],
  ['a server', `await once(net.createServer().listen(0), 'listening');`, '1 × TCPServerWrap'],
  [
    'a child',
    `spawn(process.execPath, ['-e', 'process.stdin.resume()']); /* ends with its parent */`,
    '1 × ProcessWrap',
  ],
])(
  'a file that leaves %s behind fails and names it',
  (_what, body, kind) => {
    const { status, said } = outcomeOf(body);
    expect(status).toBe(1);
    expect(said).toContain(kind);
  },
  60_000,
);

test('what is closing is awaited', () => {
  const { status, said } = outcomeOf(`
    const server = net.createServer();
    await once(server.listen(0), 'listening');
    const socket = net.connect(server.address().port);
    await once(socket, 'connect');
    socket.destroy();
    server.close();
    const child = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 60_000)'], { stdio: 'ignore' });
    await once(child, 'spawn');
    child.kill();`);
  expect([status, status === 0 ? '' : said]).toEqual([0, '']);
}, 60_000);
