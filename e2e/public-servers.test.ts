import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { builtBy } from './fixtures/built-by.ts';
import { ensureGoBase, ensureNodeBase, ensurePythonBase } from './images.ts';
import { component, repoRoot, title } from './require.ts';
import { learnAndRun, sessionAt, TRUSTED, variablesOf, type Learned, type Session } from './servers/runs.ts';
import { PUBLIC_SERVERS, type PublicServer } from './servers/table.ts';
import { makeWorld } from './servers/world.ts';
import { NOBODY, openUser } from './skep.ts';

// Servers that others publish: each is watched while it works, works again under the least profile that was proposed for it, and
// tells its tools on an engine. A few each time; all with SKEP_TEST_SERVERS=all (npm run test:servers), which takes long and
// leaves what was learned in dist/public-servers.md.

const all = process.env['SKEP_TEST_SERVERS'] === 'all';
const chosen = PUBLIC_SERVERS.filter(({ quick }) => all || quick !== undefined);
const needed = await Promise.all(
  (['sandbox', 'strace', 'npm', 'pypi', 'python'] as const).map((name) => component(name)),
);
const engine = await component('engine');
const [postgres, go] = [await component('postgres-debian'), await component('go')];
const lacks = ({ target, mounts = {} }: PublicServer): boolean =>
  (target.startsWith('go:') && !go.available) || ('postgres' in mounts && !postgres.available);
const asRoot = process.getuid?.() === 0;

const BASES: Readonly<Record<string, () => Promise<string>>> = {
  npx: ensureNodeBase,
  uvx: ensurePythonBase,
  go: ensureGoBase,
};
const rows: string[] = [];

describe.skipIf(needed.some((one) => !one.available) || !asRoot)(
  title('servers that others publish', ...needed),
  { timeout: 600_000 },
  () => {
    afterAll(() => {
      if (all) writeTable();
    });

    test.for(chosen.map((server) => [server.name, server] as const))(
      title('the server "%s" works under the profile that was learned, and on an engine', engine),
      async ([, server], { skip }) => {
        if (lacks(server)) skip('Go or PostgreSQL is not installed');
        const user = openUser({ SKEP_RUNTIME: 'sandbox' }, NOBODY);
        const before = Date.now();
        try {
          await using world = await makeWorld(server, user.dir, NOBODY);
          const learned = await learnAndRun(server, { user, uid: NOBODY }, world);
          expectUsed(learned.first, server, learned.told);
          expectLearned(learned, server);
          expectUsed(learned.again, server, JSON.stringify(learned.profile));
          expect(learned.again.tools).toEqual(learned.first.tools);
          const middle = Date.now();
          const asked = engine.available && (all || server.quick === 'both');
          const built = asked ? await onEngine(server, learned) : undefined;
          if (built !== undefined) expect(built.tools).toEqual(learned.first.tools);
          rows.push(rowOf(server, learned, [middle - before, Date.now() - middle, built]));
        } finally {
          await user.end();
        }
      },
    );
  },
);

function expectUsed({ answer }: Session, { call }: PublicServer, said: string): void {
  if (call === undefined) return;
  const text = JSON.stringify(answer).replaceAll(String.raw`\"`, '"');
  expect(text, said).toMatch(call.answers);
  expect(answer?.isError ?? false, text).toBe(false);
}

function expectLearned({ profile, told }: Learned, server: PublicServer): void {
  const { bodies = {}, mounts = {}, unused = [], writes = [], alsoAsks = [] } = server;
  const hosts = Object.keys(bodies).toSorted();
  expect(profile.network.outbound).toEqual({
    insecure_allow_all: false,
    allow_host: hosts,
    allow_port: hosts.length === 0 ? [] : [443],
  });
  const shown = [...Object.values(mounts), ...(server.bodies === undefined ? [] : [TRUSTED])];
  const targets = (all: readonly string[]): string[] => all.map((one) => one.split(':')[1] ?? one).toSorted();
  const reads = shown.filter((one) => !unused.includes(one) && !writes.includes(one));
  expect({ read: targets(profile.read), write: targets(profile.write) }, told).toEqual({
    read: reads.toSorted(),
    write: [...writes].toSorted(),
  });
  for (const host of alsoAsks) expect(told).toContain(`${host}:443`);
  expect(told).not.toContain('Not seen');
}

/** Its session where the package becomes an image, under the same profile; undefined where such packages do not. */
async function onEngine(server: PublicServer, { file }: Learned): Promise<Session | undefined> {
  const { name, target, needsInImage, args = [] } = server;
  const base = BASES[target.split(':')[0] ?? ''];
  if (base === undefined || needsInImage !== undefined) return undefined;
  const user = openUser({ SKEP_RUNTIME: 'docker' });
  try {
    const ca = process.env['SSL_CERT_FILE'] ?? process.env['NODE_EXTRA_CA_CERTS'];
    const words = [
      '--name',
      `${name}-${randomBytes(3).toString('hex')}`,
      '--runtime-image',
      await base(),
      ...(ca === undefined ? [] : ['--ca-cert', ca]),
      '--permission-profile',
      file,
      '--isolate-network',
      ...variablesOf(server),
      ...(args.length === 0 ? [] : ['--', ...args]),
    ];
    const { code, stdout, stderr } = await user.skep(['run', target, ...words]);
    expect(code, stderr).toBe(0);
    return await sessionAt(stdout.trim(), {});
  } finally {
    await user.end();
    expect(await builtBy(user)).toEqual([]);
  }
}

/** A line of the table in docs/servers.md. */
function rowOf(
  { target, call, alsoAsks = [] }: PublicServer,
  { profile, first }: Learned,
  [sandboxMs, engineMs, built]: readonly [number, number, Session | undefined],
): string {
  const { allow_host: hosts } = profile.network.outbound;
  const own = (paths: readonly string[]): string =>
    paths.map((one) => one.split(':')[1] ?? one).filter((one) => one !== TRUSTED).join(', ') || '–'; // prettier-ignore
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(0)} s`;
  const cells = [
    `\`${target}\``,
    String(first.tools.length),
    call === undefined ? '–' : `\`${call.name}\``,
    hosts.map((host) => `${host}:443`).join(', ') || '–',
    own(profile.read),
    own(profile.write),
    alsoAsks.join(', ') || '–',
    seconds(sandboxMs),
    built === undefined ? '–' : seconds(engineMs),
  ];
  return `| ${cells.join(' | ')} |`;
}

function writeTable(): void {
  const file = path.join(repoRoot, 'dist/public-servers.md');
  mkdirSync(path.dirname(file), { recursive: true });
  const head = '| package | tools | called | reaches | reads | writes | asks in vain | sandbox | engine |';
  writeFileSync(file, [head, head.replaceAll(/[^|]+/g, '---'), ...rows, ''].join('\n'));
}
