import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { instanceMetadata } from './fixtures/instance-metadata.ts';
import { npmPostgres } from './postgres/binaries.ts';
import { Cluster } from './postgres/cluster.ts';
import { rdsRelay, type RdsRelay } from './postgres/rds-relay.ts';
import { type Environment, RegistryFolder } from './registry/process.ts';
import { component, title } from './require.ts';

const postgres = await component('postgres');
const hasOpenssl = spawnSync('openssl', ['version']).status === 0;

const REGION = 'eu-central-1';
const ACCESS_KEY = 'AKIDEXAMPLE';
const SECRET_KEY = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY';
const PASSWORD = 'only-the-relay-knows';
const KEYS = { AWS_ACCESS_KEY_ID: ACCESS_KEY, AWS_SECRET_ACCESS_KEY: SECRET_KEY };

/** No database of Amazon's: a double that checks tokens as RDS does, before a real PostgreSQL. */
describe.skipIf(!postgres.available || !hasOpenssl)(title('signing in with IAM tokens', postgres), () => {
  let cluster: Cluster;
  let certificates: RegistryFolder;
  let relay: RdsRelay;

  beforeAll(async () => {
    certificates = await RegistryFolder.create();
    const key = path.join(certificates.path, 'server.key');
    const cert = path.join(certificates.path, 'server.pem');
    const asked =
      'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost';
    const made = spawnSync(
      'openssl',
      [...asked.split(' '), '-addext', 'subjectAltName=DNS:localhost', '-keyout', key, '-out', cert],
      { encoding: 'utf8' },
    );
    if (made.status !== 0) throw new Error(made.stderr);
    cluster = await Cluster.start({
      bin: (await npmPostgres()) ?? '',
      files: {
        'pg_hba.conf': 'host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 password\n',
      },
    });
    await cluster.query(
      'postgres',
      `create role rds_iam; create role mig login createrole password '${PASSWORD}';
       grant rds_iam to mig with admin option`,
    );
    relay = await rdsRelay({
      serverPort: cluster.port,
      key: await readFile(key, 'utf8'),
      cert: await readFile(cert, 'utf8'),
      region: REGION,
      accessKey: ACCESS_KEY,
      secretKey: SECRET_KEY,
      password: PASSWORD,
    });
  });
  afterAll(async () => {
    await relay.close();
    await cluster.stop();
    await certificates.remove();
  });

  async function configured(
    env: Environment,
    { region = REGION, user = 'mig' } = {},
  ): Promise<{ readonly folder: RegistryFolder; readonly config: string }> {
    const folder = await RegistryFolder.create(env);
    onTestFinished(() => folder.remove());
    const database = await cluster.createDatabase();
    await cluster.query('postgres', `alter database ${database} owner to mig`);
    const config = await folder.write(
      'registry.yaml',
      JSON.stringify({
        sources: [{ name: 'ours', managed: {} }],
        registries: [{ name: 'all', sources: ['ours'] }],
        auth: { mode: 'anonymous' },
        database: {
          host: 'localhost',
          port: relay.port,
          database,
          user,
          migrationUser: 'mig',
          sslMode: 'verify-full',
          sslRootCert: path.join(certificates.path, 'server.pem'),
          dynamicAuth: { awsRdsIam: { region } },
        },
      }),
    );
    return { folder, config };
  }

  /** Whoever reads what a program wrote learns neither a token nor a key. */
  const expectNoSecret = (text: string): void => expect(text).not.toMatch(/X-Amz|wJalr|only-the-relay/);

  test(
    'primes, migrates and serves, and connects again with fresh tokens after a cut',
    { timeout: 120_000 },
    async () => {
      const { folder, config } = await configured(KEYS, { user: 'app' });
      expect(await folder.run('prime-db', 'app', '--config', config)).toMatchObject({ code: 0, stdout: '' });
      const members = await cluster.query(
        'postgres',
        `select rolpassword is null as bare, pg_has_role('app', 'rds_iam', 'member') as member
       from pg_authid where rolname = 'app'`,
      );
      expect(members).toEqual([{ bare: true, member: true }]);
      await cluster.query('postgres', `alter role app password '${PASSWORD}'`);
      expect(await folder.run('migrate', 'up', '-y', '--config', config)).toMatchObject({ code: 0 });
      const migrated = relay.signIns.length;
      expect(relay.signIns.every(({ user }) => user === 'mig')).toBe(true);

      const serving = await folder.serve(config);
      const publish = async (name: string): Promise<number> => {
        const response = await fetch(`${serving.open}/registry/all/v0.1/publish`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ name, version: '1.0.0', url: 'https://x.example/mcp', description: 'x' }),
        });
        await response.text();
        return response.status;
      };
      expect(await publish('io.acme/one')).toBe(201);
      expect(relay.signIns.slice(migrated).some(({ user }) => user === 'app')).toBe(true);

      const before = relay.signIns.length;
      relay.cut();
      // A token of before the cut would be refused for ever.
      await expect.poll(() => publish('io.acme/two'), { timeout: 60_000, interval: 100 }).toBe(201);
      // One for writing, and one that listens.
      await expect.poll(() => relay.signIns.length - before, { timeout: 60_000 }).toBeGreaterThanOrEqual(2);
      const stored = await fetch(`${serving.open}/registry/all/v0.1/servers`);
      expect(await stored.text()).toMatch(/io\.acme\/one.*io\.acme\/two/s);

      const explaining = relay.signIns.length;
      const explained = await folder.run('explain', '--config', config, '--entry', 'io.acme/two');
      expect(explained).toMatchObject({ code: 0, stdout: expect.stringContaining('io.acme/two') });
      expect(relay.signIns.slice(explaining).some(({ user }) => user === 'app')).toBe(true);

      const ended = await serving.stop();
      expect(ended.code).toBe(0);
      expectNoSecret(ended.stdout + ended.stderr);
      // 'ended early' is a sign-in that the cut fell into.
      expect(relay.refusals.filter((why) => !['older than allowed', 'ended early'].includes(why))).toEqual(
        [],
      );
    },
  );

  test('takes region and credentials of the machine', { timeout: 60_000 }, async () => {
    const metadata = await instanceMetadata(REGION, {
      AccessKeyId: ACCESS_KEY,
      SecretAccessKey: SECRET_KEY,
      Token: 'of-the-role',
      Expiration: new Date(Date.now() + 6 * 3_600_000).toISOString(),
    });
    onTestFinished(() => metadata.close());
    const env = { AWS_EC2_METADATA_SERVICE_ENDPOINT: metadata.endpoint };
    const { folder, config } = await configured(env, { region: 'detect' });
    expect(await folder.run('migrate', 'up', '-y', '--config', config)).toMatchObject({ code: 0 });
    expect(relay.signIns.at(-1)).toMatchObject({ user: 'mig', region: REGION, session: 'of-the-role' });
  });

  test.each<[why: string, env: Environment, region: string, said: string]>([
    [
      'of another key',
      { ...KEYS, AWS_SECRET_ACCESS_KEY: 'wJalr-another' },
      REGION,
      'PAM authentication failed',
    ],
    ['for another region', KEYS, 'us-east-1', 'PAM authentication failed'],
    [
      'for a region that nobody tells',
      { ...KEYS, AWS_EC2_METADATA_SERVICE_ENDPOINT: 'http://127.0.0.1:1' },
      'detect',
      'database.dynamicAuth.awsRdsIam.region: cannot detect the region',
    ],
    [
      'of no credentials',
      { AWS_EC2_METADATA_DISABLED: 'true' },
      REGION,
      'no token to sign in to the database as "mig": ',
    ],
  ])('is refused in plain words with a token %s', { timeout: 60_000 }, async (_why, env, region, said) => {
    const { folder, config } = await configured(env, { region });
    const ended = await folder.run('migrate', 'up', '-y', '--config', config);
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toContain(said);
    expectNoSecret(ended.stderr);
  });
});
