import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { npmRegistryWith, type NpmRegistry } from './fixtures/npm-registry.ts';
import { ensureScriptImage } from './images.ts';
import { component, title } from './require.ts';
import { openUser, USERS, type SkepResult, type TestUser } from './skep.ts';

// What a server was refused, and the line that allows it, as a person copies it from one command into the next.

const sandbox = await component('sandbox');
const engine = await component('engine');
const PLACES = [
  ...USERS.map(([who, uid]) => ({ where: `in the sandbox of ${who}`, on: sandbox, kind: 'sandbox', uid })),
  { where: 'on an engine', on: engine, kind: 'docker', uid: undefined },
] as const;

/** An address of this machine that is not its loopback: private or its own, so only a profile that names it opens it. */
const HERE = Object.values(networkInterfaces())
  .flatMap((cards) => cards ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;

const PACKAGE = 'skep-test-permit';
const IMAGE = 'skep-test/permit:1';
/** Says on stderr, again and again, what it gets of the address and the file that its arguments name. */
const ASKING_SERVER = `#!/usr/bin/env node
import { createInterface } from 'node:readline';
import { readFileSync } from 'node:fs';
const [url, file] = process.argv.slice(2);
const answers = {
  initialize: { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 'asking', version: '1' } },
};
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: answers[method] ?? {} }));
});
async function ask() {
  const answer = await fetch(url).catch(({ cause }) => ({ status: cause?.code ?? 'failed' }));
  console.error('status ' + answer.status);
  try { console.error('file ' + readFileSync(file, 'utf8')); } catch (error) { console.error(String(error)); }
}
await ask();
setInterval(ask, 500);
`;

for (const { where, on, kind, uid } of PLACES) {
  describe.skipIf(!on.available || HERE === undefined)(title(`a server ${where}`, on), () => {
    const isImage = kind === 'docker';
    let target: Server;
    let registry: NpmRegistry;
    let user: TestUser;
    beforeAll(async () => {
      registry = await npmRegistryWith(PACKAGE, ASKING_SERVER);
      if (isImage) await ensureScriptImage(IMAGE, ASKING_SERVER);
      target = createServer((_request, response) => response.end('here'));
      target.listen(0, HERE);
      await once(target, 'listening');
    });
    afterAll(async () => {
      target.close();
      await registry[Symbol.asyncDispose]();
    });
    beforeEach(() => {
      user = openUser({ SKEP_RUNTIME: kind }, uid);
    });
    afterEach(() => user.end());

    async function done(args: readonly string[]): Promise<SkepResult> {
      const result = await user.skep(args, { env: { npm_config_registry: registry.url } });
      expect(result.code, result.stderr).toBe(0);
      return result;
    }
    const address = (): string => `${HERE ?? ''}:${(target.address() as AddressInfo).port}`;
    const wrote = async (): Promise<string> => (await done(['logs', 'asking'])).stdout;

    test('is refused what its profile does not name; the lines that status shows give it that, and deny takes it away', async () => {
      const notes = path.join(user.dir, 'notes');
      mkdirSync(notes);
      const file = path.join(notes, 'today.txt');
      writeFileSync(file, 'buy milk');
      const args = ['--', `http://${address()}/`, file];
      const server = isImage ? IMAGE : `npx://${PACKAGE}`;
      await done(['run', server, '--name', 'asking', '--isolate-network', ...args]);
      await expect.poll(wrote, { timeout: 30_000 }).toContain('ENOENT');
      expect(await wrote()).not.toContain('status 200');
      expect(await wrote()).not.toContain('buy milk');

      const shown = (await done(['status', 'asking'])).stdout;
      expect(shown).toMatch(
        new RegExp(`^Refused: +\\d+ × ${address()} – skep permit asking ${address()}$`, 'm'),
      );
      const lines = [...shown.matchAll(/– skep (permit asking \S+)$/gm)].map(([, line = '']) => line);
      expect(lines).toEqual([`permit asking ${address()}`, `permit asking ${file}`]);
      const denied = (await done(['logs', 'asking', '--denied'])).stdout;
      expect(denied).toMatch(new RegExp(` ${address()} +proxy +.*private|machine`));

      for (const line of lines) await done(line.split(' '));
      await expect.poll(wrote, { timeout: 30_000 }).toMatch(/status 200\nfile buy milk/);
      const after = (await done(['status', 'asking', '--format', 'json'])).stdout;
      expect(JSON.parse(after)).toMatchObject({
        refused: [],
        may_lack: [],
        permissions: { network: ['any public host', address()], reads: [file] },
      });

      await done(['deny', 'asking', address(), file]);
      await expect
        .poll(async () => (await done(['status', 'asking'])).stdout, { timeout: 30_000 })
        .toMatch(new RegExp(`^Refused: +\\d+ × ${address()} `, 'm'));
    });
  });
}
