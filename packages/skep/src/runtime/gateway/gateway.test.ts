import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import http, { type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { PackageGateway } from './gateway.ts';

test('however much is asked at once, a bounded part of it is worked on, and all is answered', async () => {
  let [now, most] = [0, 0];
  await using gateway = new PackageGateway(async ({ path: asked, response }) => {
    most = Math.max(most, (now += 1));
    for (let turns = 0; turns < 20; turns += 1) await turn();
    now -= 1;
    response.end(asked);
  });
  const directory = await mkdtemp(path.join(tmpdir(), 'skep-gateway-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const socketPath = path.join(directory, 'socket');
  await gateway.listen(socketPath);
  const names = Array.from({ length: 300 }, (_one, at) => `name-${at}`);
  const answers = await Promise.all(
    names.map(async (name) => {
      const [response] = (await once(http.get({ socketPath, path: `/${name}` }), 'response')) as [
        IncomingMessage,
      ];
      return text(response);
    }),
  );
  expect(answers).toEqual(names);
  expect(most).toBeGreaterThan(8);
  expect(most).toBeLessThanOrEqual(64);
});
