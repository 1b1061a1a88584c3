import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { commandUnderTest, type CommandUnderTest } from '../command-under-test.fixture.ts';
import { catalogueOf, imagePackage } from '../commands/catalogue.fixture.ts';

const CATALOGUE = catalogueOf({ 'com.example/alpha': {} });
const ALPHA = {
  name: 'com.example/alpha',
  description: 'First of its kind',
  version: '1.0.0',
  packages: [imagePackage()],
};
const API = { servers: [], metadata: { count: 0 } };

/** A server on this machine until the test ends; resolves to its address. */
async function serving(answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const json =
  (body: unknown, status = 200): RequestListener =>
  (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };

async function choose(address: string): Promise<{ skep: CommandUnderTest; chosen: string; err: string }> {
  const skep = await commandUnderTest({ supervisor: 'none' });
  const { err } = await skep.run(`config set-registry --allow-private-ip ${address}`);
  return { skep, err, chosen: await skep.output('config get-registry') };
}

describe('an address that is chosen as the catalogue', () => {
  test('is the registry API where it answers as one', async () => {
    const asked: string[] = [];
    const address = await serving((request, response) => {
      asked.push(request.url ?? '');
      json(API)(request, response);
    });
    expect((await choose(`${address}/`)).chosen).toBe(`${address}/ (API endpoint)\n`);
    expect(asked).toEqual(['/v0.1/servers?limit=1&version=latest']);
  });

  test.each([401, 403])('is the registry API, too, where it wants to know who asks (%d)', async (status) => {
    const address = await serving(json({ error: 'who are you' }, status));
    expect((await choose(address)).chosen).toContain('(API endpoint)');
  });

  test('is a file where it ends in .json, and is asked for nothing else', async () => {
    const asked: string[] = [];
    const address = await serving((request, response) => {
      asked.push(request.url ?? '');
      json(CATALOGUE)(request, response);
    });
    const { skep, chosen } = await choose(`${address}/list.json`);
    expect(chosen).toBe(`${address}/list.json (remote file)\n`);
    expect(asked).toEqual(['/list.json']);
    expect(await skep.output('search alpha')).toContain('com.example/alpha');
  });

  test.each([
    ['says that there is nothing', json({}, 404)],
    ['answers something else', json({ hello: 'world' })],
    ['has servers, but no page', json({ servers: [] })],
    ['has a page, but no servers', json({ servers: {}, metadata: {} })],
  ])('is a file where the API %s', async (_, answer) => {
    const address = await serving((request, response) => {
      if (request.url?.startsWith('/catalogue/v0.1/') === true) return answer(request, response);
      return json(CATALOGUE)(request, response);
    });
    expect((await choose(`${address}/catalogue`)).chosen).toContain('(remote file)');
  });

  test.each([
    ['no JSON at all', (_request, response) => void response.end('<html>'), 'not valid JSON'],
    ['an empty catalogue', json({ data: { servers: [] } }), 'no entries'],
    ['nothing', json({}, 404), '404'],
  ] as const satisfies readonly (readonly [string, RequestListener, string])[])(
    'is refused, and nothing is chosen, where it has %s',
    async (_, answer, reason) => {
      const address = await serving(answer);
      const { chosen, err } = await choose(`${address}/list.json`);
      expect(err).toMatch(/^Error: /);
      expect(err).toContain(reason);
      expect(chosen).toBe('built-in catalogue\n');
    },
  );

  test('is not taken without a word where it is of this machine', async () => {
    const address = await serving(json(API));
    const skep = await commandUnderTest({ supervisor: 'none' });
    expect(await skep.refusal(`config set-registry ${address}`)).toMatch(/plain http.*--allow-private-ip/);
  });
});

describe('a catalogue over the registry API', () => {
  test('finds the latest version of a name, and says when there is none', async () => {
    const asked: string[] = [];
    const address = await serving((request, response) => {
      asked.push(decodeURIComponent(request.url ?? ''));
      if (request.url?.includes('alpha') === true) return json({ server: ALPHA })(request, response);
      return request.url?.includes('/versions/') === true
        ? json({ error: 'no' }, 404)(request, response)
        : json(API)(request, response);
    });
    const skep = await commandUnderTest({ supervisor: 'asked' });
    await skep.configure(`registry_api_url: ${address}\nallow_private_registry_ip: true\n`);
    expect(await skep.output('registry info com.example/alpha')).toContain('Name:        com.example/alpha');
    expect(asked[0]).toBe('/v0.1/servers/com.example/alpha/versions/latest');
    expect(await skep.refusal('run absent')).toContain(
      `server "absent" not found in the catalogue at ${address}`,
    );
  });

  test('that wants to know who asks is told so, and a name is never taken for an image meanwhile', async () => {
    const address = await serving(json({ error: 'who are you' }, 401));
    const skep = await commandUnderTest({ supervisor: 'asked' });
    await skep.configure(`registry_api_url: ${address}\nallow_private_registry_ip: true\n`);
    for (const line of ['run team/alpha', 'run alpha', 'search alpha']) {
      expect(await skep.refusal(line)).toMatch(
        /^Error: .* wants to know who asks, and you are signed in as nobody; sign in with skep login .*\n$/,
      );
    }
  });

  test('is kept with what was run from it, as a file at an address is, without what signs in there', async () => {
    const list = await serving(json(catalogueOf({ 'com.example/alpha': {} })));
    const api = await serving(json({ server: ALPHA }));
    const withLogin = list.replace('//', '//me:hunter2@');
    for (const [key, address, kept] of [
      ['registry_api_url', api, api],
      ['registry_url', `${withLogin}/list.json`, `${list}/list.json`],
      ['local_registry_path', 'HOME/list.json', undefined],
    ] as const) {
      const skep = await commandUnderTest({ files: { '../list.json': CATALOGUE } });
      await skep.configure(
        `${key}: ${address.replace('HOME', skep.home)}\nallow_private_registry_ip: true\n`,
      );
      await skep.output('run com.example/alpha --name a1');
      const saved = JSON.parse(await skep.output('export a1 -')) as Record<string, unknown>;
      expect(saved).toMatchObject({ image: 'fake:1', registry_server_name: 'com.example/alpha' });
      const { registry_api_url, registry_url } = saved;
      expect({ registry_api_url, registry_url }).toEqual(kept === undefined ? {} : { [key]: kept });
    }
  });
});
