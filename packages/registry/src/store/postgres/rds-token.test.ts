import { once } from 'node:events';
import http from 'node:http';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Login } from './settings.ts';
import { readToken } from './rds-token.fixture.ts';
import { rdsToken, instanceRegion } from './rds-token.ts';

const SECRET = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY';
const NOW = Date.parse('2026-03-04T05:06:07Z');

const login = (user: string): Login => ({
  host: 'reg.abc123.eu-central-1.rds.amazonaws.com',
  port: 5432,
  database: 'registry',
  user,
  password: undefined,
});

describe('a token of RDS', () => {
  beforeEach(() => {
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'AKIDEXAMPLE');
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', SECRET);
    vi.stubEnv('AWS_SESSION_TOKEN', undefined);
    vi.stubEnv('AWS_PROFILE', undefined);
    vi.useFakeTimers({ toFake: ['Date'], now: NOW });
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    vi.useRealTimers();
  });

  test('asks to connect as the user for 15 minutes, signed with the key of the environment', async () => {
    vi.stubEnv('AWS_SESSION_TOKEN', 'session/+=');
    const token = await rdsToken({ region: 'eu-central-1' }, {})(login("app'1 +&"));
    expect(readToken(token, SECRET)).toEqual({
      host: 'reg.abc123.eu-central-1.rds.amazonaws.com:5432',
      user: "app'1 +&",
      action: 'connect',
      accessKey: 'AKIDEXAMPLE',
      region: 'eu-central-1',
      service: 'rds-db',
      session: 'session/+=',
      issued: NOW,
      expires: NOW + 15 * 60_000,
      isSigned: true,
    });
    expect(readToken(token, 'another key').isSigned).toBe(false);
    expect(readToken(token.replace('app', 'mig'), SECRET).isSigned).toBe(false);
  });

  test('is made anew for each connection, and for each user by name', async () => {
    const tokenOf = rdsToken({ region: 'eu-central-1' }, {});
    const first = readToken(await tokenOf(login('app')), SECRET);
    vi.setSystemTime(NOW + 1_000);
    const second = readToken(await tokenOf(login('app')), SECRET);
    expect(second).toEqual({ ...first, issued: NOW + 1_000, expires: NOW + 901_000 });
    const migration = readToken(await tokenOf(login('mig')), SECRET);
    expect(migration).toEqual({ ...second, user: 'mig' });
  });

  test('that cannot be signed names the user and nothing secret', async () => {
    vi.stubEnv('AWS_ACCESS_KEY_ID', undefined);
    vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true');
    vi.stubEnv('AWS_CONFIG_FILE', '/nonexistent/config');
    vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', '/nonexistent/credentials');
    const failing = rdsToken({ region: 'eu-central-1' }, {})(login('app'));
    await expect(failing).rejects.toMatchObject({
      code: 'store/no-token',
      message: expect.stringMatching(/^no token to sign in to the database as "app": \S.*$/),
    });
    await expect(failing).rejects.not.toMatchObject({ message: expect.stringContaining(SECRET) });
  });
});

describe('the region of this machine', () => {
  type Answer = (request: http.IncomingMessage, response: http.ServerResponse) => void;

  /** A metadata service that answers the session's question itself, and the other as it is told. */
  async function metadata(region: Answer, session: Answer = (_, response) => response.end('s3ss10n')) {
    const server = http.createServer((request, response) => {
      const asked = `${request.method ?? ''} ${request.url ?? ''}`;
      if (asked === 'PUT /latest/api/token') session(request, response);
      else if (asked === 'GET /latest/meta-data/placement/region') region(request, response);
      else response.writeHead(404).end();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    return `http://127.0.0.1:${address.port}`;
  }

  test('is asked for in a session (IMDSv2), and once it is known not again', async () => {
    let asked = 0;
    const endpoint = await metadata(
      ({ headers }, response) => {
        asked += 1;
        const known = headers['x-aws-ec2-metadata-token'] === 's3ss10n';
        response.writeHead(known ? 200 : 401).end('eu-north-1');
      },
      ({ headers }, response) =>
        response
          .writeHead(headers['x-aws-ec2-metadata-token-ttl-seconds'] === '60' ? 200 : 400)
          .end('s3ss10n'),
    );
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'AKIDEXAMPLE');
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', SECRET);
    onTestFinished(() => void vi.unstubAllEnvs());
    const tokenOf = rdsToken({ region: 'detect' }, { endpoint });
    for (const user of ['app', 'mig', 'app'])
      expect(readToken(await tokenOf(login(user)), SECRET)).toMatchObject({
        region: 'eu-north-1',
        isSigned: true,
      });
    expect(asked).toBe(1);
  });

  test.each<[why: string, region: Answer, said: string]>([
    ['is refused', (_, response) => response.writeHead(403).end('secret'), 'answers with status 403'],
    ['is no region', (_, response) => response.end('<html>secret</html>'), 'is no region'],
    ['never ends', (_, response) => response.write('a'.repeat(2_000)), 'cannot be asked'],
    [
      'is elsewhere',
      (_, response) => response.writeHead(302, { location: '/latest/api/token' }).end(),
      'cannot be asked',
    ],
  ])('is not taken from an answer that %s', async (_why, region, said) => {
    const error: unknown = await instanceRegion({ endpoint: await metadata(region) }).catch((one) => one);
    expect(error).toMatchObject({ code: 'store/no-token', hint: expect.stringContaining('name the region') });
    expect(String(error)).toContain('database.dynamicAuth.awsRdsIam.region: cannot detect the region');
    expect(String(error)).toContain(said);
    expect(String(error)).not.toContain('secret');
  });

  test('is given up at the deadline, wherever the service hangs, and asked for again the next time', async () => {
    for (const hanging of ['session', 'region'] as const) {
      const deadline = new AbortController();
      const hang: Answer = () => deadline.abort();
      const endpoint = await (hanging === 'session' ? metadata(hang, hang) : metadata(hang));
      await expect(instanceRegion({ endpoint, deadline: deadline.signal })).rejects.toMatchObject({
        code: 'store/no-token',
        message: expect.stringContaining('does not answer within 2 s'),
      });
    }
    let answers = 0;
    const endpoint = await metadata((_, response) =>
      (answers += 1) === 1 ? response.writeHead(500).end() : response.end('eu-north-1'),
    );
    const tokenOf = rdsToken({ region: 'detect' }, { endpoint });
    await expect(tokenOf(login('app'))).rejects.toMatchObject({ code: 'store/no-token' });
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'AKIDEXAMPLE');
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', SECRET);
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(readToken(await tokenOf(login('app')), SECRET).region).toBe('eu-north-1');
  });
});

test('reads tokens as others make them: the published example of another SDK', () => {
  const token =
    'prod-instance.us-east-1.rds.amazonaws.com:3306/?Action=connect&DBUser=someusername' +
    '&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Date=20161107T173933Z&X-Amz-SignedHeaders=host&X-Amz-Expires=900' +
    '&X-Amz-Credential=akid%2F20161107%2Fus-east-1%2Frds-db%2Faws4_request' +
    '&X-Amz-Signature=d1138cdbc0ca63eec012ec0fc6c2267e03642168f5884a7795320d4c18374c61';
  expect(readToken(token, 'skid').isSigned).toBe(true);
});
