import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { silentLog } from '@skep/core/log/log.ts';
import { allowed, publishOf, sourceOf } from '@skep/registry/store/contract/fixture.ts';
import { NEWEST_SCHEMA } from '@skep/registry/store/schema/migrate.ts';
import { migratePostgres } from '@skep/registry/store/postgres/migrate.ts';
import { openPostgres } from '@skep/registry/store/postgres/postgres.ts';
import type { PostgresPlace } from '@skep/registry/store/postgres/connect.ts';
import type { PostgresSettings, SslMode } from '@skep/registry/store/postgres/settings.ts';
import type { Store } from '@skep/registry/store/store.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { npmPostgres } from './postgres/binaries.ts';
import { Cluster } from './postgres/cluster.ts';
import { component, repoRoot, title } from './require.ts';

const postgres = await component('postgres');
const hasOpenssl = spawnSync('openssl', ['version']).status === 0;
const PROGRAM = path.join(repoRoot, 'packages/registry/src/main.ts');

async function openOnce(place: PostgresPlace): Promise<Store> {
  const store = await openPostgres({ ...place, clock: systemClock, log: silentLog });
  onTestFinished(() => store.close());
  return store;
}

async function temporary(): Promise<string> {
  const directory = await mkdtemp(path.join(os.tmpdir(), 'skep-setup-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  return directory;
}

interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(args: readonly string[], input: string, env: NodeJS.ProcessEnv = {}): Promise<Finished> {
  const child = spawn(process.execPath, [PROGRAM, ...args], { env: { ...process.env, ...env } });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  child.stdin.end(input);
  const [code] = await once(child, 'close');
  return { code, stdout, stderr };
}

describe.skipIf(!postgres.available)(title('setting up a database', postgres), () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start({
      bin: (await npmPostgres()) ?? '',
      settings: ['password_encryption=scram-sha-256'],
      // The superuser of the tests needs no password, everybody else does.
      files: {
        'pg_hba.conf': 'host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n',
      },
    });
    await cluster.query('postgres', `create role mig login createrole password 'mig-secret'`);
  });
  afterAll(() => cluster.stop());

  const ownDatabase = async (): Promise<string> => {
    const database = await cluster.createDatabase();
    await cluster.query('postgres', `alter database ${database} owner to mig`);
    return database;
  };

  const configured = async (database: string, more = ''): Promise<string> => {
    const directory = await temporary();
    const file = path.join(directory, 'registry.yaml');
    await writeFile(
      path.join(directory, 'catalog.json'),
      JSON.stringify({ data: { servers: [] }, servers: [] }),
    );
    await writeFile(
      file,
      `sources: [{ name: internal, managed: {} }]
registries: [{ name: all, sources: [internal] }]
auth: { mode: anonymous }
database: { host: 127.0.0.1, port: ${cluster.port}, database: ${database}, user: "app'1", migrationUser: mig, sslMode: disable${more} }
`,
    );
    return file;
  };

  const settings = { user: "app'1", migrationUser: 'mig', migrationPassword: 'mig-secret' };

  test('primes, migrates and serves with a login that cannot change the schema', async () => {
    const database = await ownDatabase();
    const config = await configured(database);
    const env = { SKEP_REGISTRY_DATABASE_MIGRATIONPASSWORD: 'mig-secret' };

    const dry = await run(['prime-db', "app'1", '--config', config, '--dry-run'], '', env);
    expect(dry).toMatchObject({ code: 0, stderr: '' });
    expect(dry.stdout).toContain(`create role "app'1" login password '********'`);
    expect(await cluster.query('postgres', `select 1 from pg_roles where rolname like 'app%'`)).toEqual([]);

    const primed = await run(['prime-db', "app'1", '--config', config], `it's "secret"\n`, env);
    expect(primed).toMatchObject({ code: 0, stdout: '' });
    expect(await run(['prime-db', "app'1", '--config', config], 'another\n', env)).toMatchObject({ code: 0 });

    const refused = await run(['migrate', 'up', '--config', config], 'no\n', env);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain(`Schema 0, target ${NEWEST_SCHEMA}`);
    expect(refused.stderr).toContain('not confirmed; nothing was changed');
    const one = await run(['migrate', 'up', '-n', '1', '--config', config], 'y\n', env);
    expect(one).toMatchObject({ code: 0, stdout: 'Schema is now 1.\n' });
    await run(['migrate', 'up', '-y', '--config', config], '', env);
    expect(await run(['migrate', 'up', '--config', config], '', env)).toMatchObject({
      code: 0,
      stdout: 'Nothing to do.\n',
    });

    const place = cluster.place(database, { ...settings, password: `it's "secret"` });
    const store = await openOnce(place);
    await store.reconcile({ sources: [sourceOf('internal', 'managed')], registries: [] });
    await store.publish(publishOf('a/a', '1'), allowed);
    expect(await store.readEntries('internal')).toHaveLength(1);
    await expect(
      migratePostgres(
        {
          ...place,
          settings: { ...place.settings, migrationUser: "app'1", migrationPassword: `it's "secret"` },
        },
        () => 0,
      ),
    ).rejects.toMatchObject({ code: 'store/refused-login' });

    const all = String(NEWEST_SCHEMA);
    const down = await run(['migrate', 'down', '-n', all, '--config', config], 'y\n', env);
    expect(down).toMatchObject({ code: 1 });
    expect(await run(['migrate', 'down', '--config', config], 'yes\n', env)).toMatchObject({ code: 1 });
    const gone = await run(['migrate', 'down', '-n', all, '--config', config], 'yes\n', env);
    expect(gone).toMatchObject({ code: 0, stdout: 'Schema is now 0.\n' });
    expect(
      await cluster.query(database, `select tablename from pg_tables where schemaname = 'public'`),
    ).toEqual([{ tablename: 'schema_version' }]);
  });

  test('refuses a schema that is too old or too new, and uses a newer one that only added', async () => {
    const database = await ownDatabase();
    const place = cluster.place(database);
    await expect(openOnce(place)).rejects.toMatchObject({ code: 'store/older' });
    await migratePostgres(place, () => NEWEST_SCHEMA);
    await cluster.query(database, `update schema_version set version = version + 1`);
    await openOnce(place);
    await cluster.query(database, `update schema_version set compatible_from = version`);
    await expect(openOnce(place)).rejects.toMatchObject({ code: 'store/newer' });
  });

  test('migrates once when several replicas start together', async () => {
    const place = cluster.place(await ownDatabase());
    const runs = await Promise.all([1, 2, 3].map(() => migratePostgres(place, () => NEWEST_SCHEMA)));
    expect(runs.filter(({ before, after }) => before !== after)).toHaveLength(1);
  });

  test('takes the password from the password file, and says so when there is none or a wrong one', async () => {
    const database = await ownDatabase();
    const directory = await temporary();
    const named = path.join(directory, 'pgpass');
    const { settings: all, ...rest } = cluster.place(database, { ...settings, migrationUser: 'mig' });
    const withFile = (): PostgresPlace => {
      const { password: _p, migrationPassword: _m, ...settings } = all;
      return { ...rest, settings, passwordFile: { ...rest.passwordFile, named } };
    };
    const line = `127.0.0.1:${cluster.port}:*:mig:`;
    await writeFile(named, `${line}mig-secret\n`, { mode: 0o600 });
    await migratePostgres(withFile(), () => NEWEST_SCHEMA);
    await writeFile(named, `${line}wrong\n`);
    await expect(migratePostgres(withFile(), () => NEWEST_SCHEMA)).rejects.toMatchObject({
      code: 'store/refused-login',
      message: expect.not.stringContaining('wrong'),
    });
  });

  test('says which server does not answer', async () => {
    const place = cluster.place('nowhere', { port: 1 });
    await expect(openOnce(place)).rejects.toMatchObject({
      code: 'store/unavailable',
      message: expect.stringContaining('the database "127.0.0.1:1/nowhere" does not answer'),
    });
    await expect(openOnce(cluster.place('nowhere'))).rejects.toMatchObject({ code: 'store/refused-login' });
  });
});

describe.skipIf(!postgres.available || !hasOpenssl)(title('TLS to the database', postgres), () => {
  let directory: string;
  let secured: Cluster;
  let plain: Cluster;
  const certificate = (name: string): string => path.join(directory, name);
  const openssl = (...args: readonly string[]): void => {
    const { status, stderr } = spawnSync('openssl', args, { encoding: 'utf8' });
    if (status !== 0) throw new Error(stderr);
  };

  beforeAll(async () => {
    directory = await mkdtemp(path.join(os.tmpdir(), 'skep-tls-'));
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
    openssl(
      'req',
      '-x509',
      ...curve,
      '-keyout',
      certificate('ca.key'),
      '-out',
      certificate('ca.pem'),
      '-subj',
      '/CN=ca',
    );
    openssl(
      'req',
      '-x509',
      ...curve,
      '-keyout',
      certificate('other.key'),
      '-out',
      certificate('other.pem'),
      '-subj',
      '/CN=other',
    );
    openssl(
      'req',
      '-x509',
      ...curve,
      '-CA',
      certificate('ca.pem'),
      '-CAkey',
      certificate('ca.key'),
      '-keyout',
      certificate('server.key'),
      '-out',
      certificate('server.pem'),
      '-subj',
      '/CN=localhost',
      '-addext',
      'subjectAltName=DNS:localhost',
      '-addext',
      'basicConstraints=critical,CA:FALSE',
    );
    const bin = (await npmPostgres()) ?? '';
    secured = await Cluster.start({
      bin,
      settings: ['ssl=on', 'ssl_cert_file=server.crt', 'ssl_key_file=server.key'],
      files: {
        'server.crt': await readFile(certificate('server.pem'), 'utf8'),
        'server.key': await readFile(certificate('server.key'), 'utf8'),
      },
    });
    plain = await Cluster.start({ bin });
  });
  afterAll(async () => {
    await secured.stop();
    await plain.stop();
    await rm(directory, { recursive: true });
  });

  const encrypted = async (cluster: Cluster, settings: Partial<PostgresSettings>): Promise<boolean> => {
    const database = await cluster.createDatabase();
    const place = cluster.place(database, settings);
    await migratePostgres(place, () => NEWEST_SCHEMA);
    await openOnce(place);
    const rows = await cluster.query(
      database,
      `select bool_and(ssl) as ssl from pg_stat_ssl join pg_stat_activity using (pid)
       where application_name = 'skep-registry-test' and datname = '${database}'`,
    );
    return rows[0]?.['ssl'] === true;
  };

  test.each([
    ['disable', false],
    ['prefer', true],
    ['require', true],
    ['verify-ca', true],
    ['verify-full', true],
  ] as const satisfies readonly (readonly [SslMode, boolean])[])(
    '%s: encrypted %s',
    async (sslMode, expected) => {
      const sslRootCert = certificate('ca.pem');
      expect(await encrypted(secured, { sslMode, sslRootCert, host: 'localhost' })).toBe(expected);
    },
  );

  test('prefer does without where the server has none, require does not', async () => {
    expect(await encrypted(plain, { sslMode: 'prefer' })).toBe(false);
    await expect(encrypted(plain, { sslMode: 'require' })).rejects.toMatchObject({
      code: 'store/unavailable',
    });
  });

  test('verify-ca needs the right authority, verify-full the right name too', async () => {
    const right = { sslRootCert: certificate('ca.pem') };
    const wrong = { sslRootCert: certificate('other.pem') };
    expect(await encrypted(secured, { sslMode: 'require', ...wrong })).toBe(true);
    expect(await encrypted(secured, { sslMode: 'verify-ca', host: '127.0.0.1', ...right })).toBe(true);
    for (const settings of [
      { sslMode: 'verify-ca', ...wrong },
      { sslMode: 'verify-full', host: '127.0.0.1', ...right },
      { sslMode: 'verify-full', host: 'localhost', ...wrong },
    ] as const) {
      await expect(encrypted(secured, settings)).rejects.toMatchObject({ code: 'store/unavailable' });
    }
    const missing = { sslMode: 'verify-full', sslRootCert: '/nowhere/ca.pem' } as const;
    await expect(encrypted(secured, missing)).rejects.toMatchObject({ code: 'store/invalid-settings' });
  });
});
