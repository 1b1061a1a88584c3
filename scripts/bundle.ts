import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { compileFunction } from 'node:vm';
import { rolldown, type OutputChunk, type OutputOptions, type Plugin } from 'rolldown';
import { CHUNK_PARAMETERS } from '../packages/skep/src/cli/load-chunks.ts';
import { asCommonJs } from './as-common-js.ts';
import { lazyBuiltins } from './lazy-builtins.ts';

/**
 * Makes the two published packages under dist/: one entry file per program, lazy chunks beside it, no dependencies.
 * The licences of everything bundled go along in THIRD-PARTY-LICENSES.txt.
 */
const root = path.resolve(import.meta.dirname, '..');

const PROGRAMS = [
  {
    name: 'skep',
    folder: 'packages/skep',
    about: 'Runs MCP servers as confined workloads that many clients share',
    keywords: ['mcp', 'model-context-protocol', 'mcp-server', 'sandbox', 'proxy', 'cli'],
  },
  {
    name: 'skep-registry',
    folder: 'packages/registry',
    about: 'Serves catalogues of MCP servers, to each caller what their claims allow',
    keywords: ['mcp', 'model-context-protocol', 'mcp-registry', 'catalogue', 'jwt', 'governance'],
  },
];

/**
 * What the shell runs: Node takes flags it knows, `--env-file` among them, from the whole command line up to a `--`, and
 * what that file says of NODE_OPTIONS would run here. To JavaScript the second line is a string and a comment. The
 * shorter `env -S node --` is not known to the `env` of BusyBox.
 */
const LAUNCHER = `#!/bin/sh
':' //; exec node -- "$0" "$@"
`;

/** The table of codes as text, which is read in a moment; to run what makes its rows takes 3 ms of every start. */
const tableAsText: Plugin = {
  name: 'table-as-text',
  load: async (id) => {
    if (!id.endsWith('/core/src/errors/codes.ts')) return undefined;
    const { CODES, ...others } = (await import(id)) as { readonly CODES: object };
    if (Object.keys(others).length > 0) throw new Error(`${id} exports more than its table`);
    const rows = JSON.stringify(JSON.stringify(CODES));
    return { code: `export const CODES = /* @__PURE__ */ JSON.parse(${rows});`, moduleType: 'js' };
  },
};

/**
 * Each file costs a start about a millisecond, so what many commands share is one, what has the supervisor do a run another,
 * then what looks into catalogues, what reads their entries, and what starts workloads; what hosts them, and each runtime, is
 * loaded by whoever needs it.
 * What is made of CommonJS, as YAML is, brings a file of rolldown's along, so nothing that leads to it is among the shared.
 */
const CHUNKS = [
  { name: 'zod', test: /\/node_modules\/zod\// },
  {
    name: 'shared',
    minShareCount: 2,
    test: /^\0node:|\/core\/src\/audit\/audit-event|\/core\/src\/catalog\/(?:tool-weight|variable-name)|\/core\/src\/(?:command(?!\/completion)|errors|files|json|log(?!\/pino-log)|settings(?!\/from-file\.ts)|terminal|time)\/|\/skep\/src\/(?:commands\.ts|cli\/(?:command|ensure-hosted)|print\/table|workloads\/(?:name-lock|select|to-json|to-text|view)|run-config\/(?:file|labels|summary|workload-url)|clients\/table|settings\/(?:group-name|workload-name)|protocol\/reference|permissions\/hardening|runtime\/(?:find-program|docker\/engine-sockets)|supervisor\/(?:front-state|process-identity|state))/,
  },
  // What finds servers and tells what they need, on this machine too; nothing of it leads to zod.
  {
    name: 'finding',
    test: /\/core\/src\/(?:catalog\/(?:catalogue-|display-facts|entry-name|extension-summary|find\.ts|native-group|publisher-extension|quick-servers|rank\.ts|run-plan|version-order))|\/skep\/src\/(?:catalog\/(?:choose-server|outlook|rows)|cli\/abilities|runtime\/(?:glance|(?:docker|sandbox)\/(?:glance|places)))/,
  },
  // What a server may do, in words; `search` says nothing of that.
  {
    name: 'rights',
    test: /\/core\/src\/fetch\/address-class|\/ipaddr\.js\/|\/skep\/src\/(?:catalog\/server-facts|egress\/host-name|permissions\/(?:allowed-hosts|card|confined-user-name|hardening|host-rule|limits|mounts|not-enforced|profile))/,
  },
  // Who writes the files of clients; what reads a format of theirs is loaded with the first file of it.
  {
    name: 'clients',
    test: /\/skep\/src\/(?:clients\/(?!formats|table)|supervisor\/(?:registered-clients|tell-clients))/,
  },
  {
    name: 'asking',
    test: /\/skep\/src\/(?:run\/(?:gets-network|run-through-supervisor|tell-start)|runtime\/spares|print\/progress|supervisor\/(?:address|connect|protocol|private-directory|spawn-supervisor|wake-early))|\/core\/src\/files\/lock/,
  },
  // What asks a container engine for a network while what plans a run is loaded; nothing of it leads to what that is.
  {
    name: 'engine',
    test: /\/core\/src\/fetch\/(?:read-limited|tls-reason)|\/skep\/src\/(?:cli\/runtime-environment|protocol\/image-tag|run\/(?:ask-early|make-ahead)|runtime\/(?:stuck|time-up|user-file|workload-name|docker\/(?:client|containers|early-engine|endpoint|failure|find-engine|images|labels|network|observed|read-answer))|supervisor\/owner)/,
  },
  {
    name: 'catalogue',
    minShareCount: 2,
    test: /\/skep\/src\/(?:catalog\/(?!api-catalog|catalogue-groups|registry-kind)|config)|\/core\/src\/settings\/from-file\.ts/,
  },
  { name: 'entries', minShareCount: 2, test: /\/core\/src\/catalog\// },
  // What a stored run configuration is, for those who only read one.
  {
    name: 'run-settings',
    test: /\/proxy\/src\/(?:settings|steps\/audit\/settings)|\/skep\/src\/(?:settings\/|run-config\/(?:run-config|proxy-limits)|permissions\/(?:card|hardening|not-enforced|profile|mounts|confined-user-name))/,
  },
  {
    name: 'runs',
    minShareCount: 2,
    test: /\/skep\/src\/(?!commands|account\/|publish\/|catalog\/registry-kind|runtime\/.+\/|cli\/open-host|run\/host-here|supervisor\/(?:host|http-probe|log-keeper|ready|supervise|watch)\.ts)|\/core\/src\/fetch\/(?:ca-bundle|read-limited)|\/proxy\/src\/call\/loopback/,
  },
  {
    name: 'hosting',
    test: /\/proxy\/src\/|\/skep\/src\/(?:cli\/open-host|run\/host-here|supervisor\/(?:host|http-probe|log-keeper|ready|supervise|watch)\.ts)/,
  },
  {
    name: 'docker',
    test: /\/runtime\/docker\/(?!build|docker-ignore|local-context|package-release|prepare-package|provenance|python-index|run-build|secret-|sweep)/,
  },
  // What starts a server, but not what fetches one.
  {
    name: 'sandbox',
    test: /\/runtime\/sandbox\/(?!prefetch|npm-|pypi-|go-|found-package|check-tree)/,
  },
  {
    name: 'client',
    minShareCount: 2,
    test: /\/core\/src\/fetch\/client|\/skep\/src\/account\/(?:refusal|registry-address)/,
  },
  // Who one is at a registry; only what asks one that wants to know loads it.
  {
    name: 'account',
    minShareCount: 2,
    test: /\/skep\/src\/account\/(?!no-account)|\/auth\/src\/sign-in\//,
  },
  // What it exports is made when something is first required, which no other chunk would see.
  {
    name: 'telemetry',
    test: /\/node_modules\/@opentelemetry\/|\/core\/src\/telemetry\/(?:open-telemetry|otlp|tracing)\./,
  },
];

/** What decides by policies (proxy/steps/authz/cedar-engine.ts), read when the first workload has some. */
const CEDAR = path.join(root, 'node_modules/@cedar-policy/cedar-wasm/web/cedar_wasm_bg.wasm');

/** How the chunks of both programs are made. */
const PARTED = { codeSplitting: { groups: CHUNKS } };

for (const program of PROGRAMS) await bundle(program);

async function bundle(program: (typeof PROGRAMS)[number]): Promise<void> {
  const { name } = program;
  const folder = path.join(root, 'dist', name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const chunks = name === 'skep' ? await bundleSkep(folder) : await bundleRegistry(folder);
  writeManifest(folder, program);
  writeFileSync(path.join(folder, 'THIRD-PARTY-LICENSES.txt'), licencesOf(chunks));
  cpSync(path.join(root, 'LICENSE'), path.join(folder, 'LICENSE'));
  cpSync(path.join(root, program.folder, 'README.md'), path.join(folder, 'README.md'));
  const bytes = chunks.reduce((sum, chunk) => sum + chunk.code.length, 0);
  console.log(`dist/${name}: ${chunks.length} files, ${Math.round(bytes / 1024)} KiB`);
}

/** Chunks that `cli/load-chunks.ts` loads (decision 0466); the entry and the gateway are files of their own. */
async function bundleSkep(folder: string): Promise<OutputChunk[]> {
  const sources = path.join(root, 'packages/skep/src');
  const file = 'chunks/[name]-[hash].js';
  const chunks = await build(
    { 'run-command-line': path.join(sources, 'run-command-line.ts') },
    { dir: folder, format: 'esm', entryFileNames: file, chunkFileNames: file, ...PARTED },
  );
  refuseHeavy(chunks);
  refuseCircles(chunks);
  for (const { fileName, code } of chunks) {
    const script = asCommonJs(code);
    // Fails on what only a module may hold.
    compileFunction(`'use strict';${script}`, CHUNK_PARAMETERS, { filename: fileName });
    writeFileSync(path.join(folder, fileName), script);
  }
  const first = chunks.find(({ isEntry }) => isEntry)?.fileName;
  const entry = await build(
    { skep: path.join(sources, 'main.ts') },
    { dir: folder, format: 'cjs', entryFileNames: '[name].js' },
    { SKEP_PROGRAM: JSON.stringify(first) },
  );
  launchable(folder, entry);
  // Serves isolated workloads, beside a sandbox or in an image that holds only Node.
  const gateway = await build(
    { gateway: path.join(sources, 'egress/main.ts') },
    { dir: folder, format: 'esm', entryFileNames: '[name].mjs' },
  );
  for (const alone of [entry, gateway]) refuseParts(alone);
  cpSync(CEDAR, path.join(folder, 'cedar.wasm'));
  return [...chunks, ...entry, ...gateway];
}

async function bundleRegistry(folder: string): Promise<OutputChunk[]> {
  const input = { 'skep-registry': path.join(root, 'packages/registry/src/main.ts') };
  const names = { entryFileNames: '[name].js', chunkFileNames: 'chunks/[name]-[hash].js' };
  const chunks = await build(input, { dir: folder, format: 'esm', ...names, ...PARTED });
  launchable(folder, chunks);
  return chunks;
}

async function build(
  input: Record<string, string>,
  to: OutputOptions,
  define: Record<string, string> = {},
): Promise<OutputChunk[]> {
  const started = await rolldown({
    input,
    platform: 'node',
    cwd: root,
    // Its other form asks for its parts in a way that no bundler follows.
    resolve: { alias: { 'jsonc-parser': path.join(root, 'node_modules/jsonc-parser/lib/esm/main.js') } },
    plugins: [lazyBuiltins, tableAsText],
    // What only the sources ask for, which find their parts otherwise.
    transform: { define: { ...buildFacts(), ...define, 'import.meta.resolve': 'undefined' } },
    onLog(level, log) {
      if (level === 'warn') console.error(`${Object.keys(input).join()}: ${log.message}`);
    },
  });
  const { output } = await started.write({
    ...to,
    minify: { mangle: false, compress: true, codegen: true },
  });
  await started.close();
  return output.filter((one): one is OutputChunk => one.type === 'chunk');
}

/** What is loaded alone is one small file. */
function refuseParts([file, ...others]: readonly OutputChunk[]): void {
  const heavy = file?.moduleIds.find((id) => /\/node_modules\/(?!ipaddr\.js\/)/.test(id));
  if (others.length > 0 || heavy !== undefined)
    throw new Error(
      `${file?.name} is not one small file: ${heavy ?? others.map((one) => one.fileName).join()}`,
    );
}

/** In CommonJS what two chunks want of each other is not there yet when the second one runs. */
function refuseCircles(chunks: readonly OutputChunk[]): void {
  for (const chunk of chunks)
    if (importedBy(chunk, chunks).has(chunk.fileName)) throw new Error(`${chunk.fileName} imports itself`);
}

/** What `version` prints: of the commit that is bundled, so that the same commit gives the same bytes. */
function buildFacts(): Record<string, string> {
  const { status, stdout } = spawnSync('git', ['log', '-1', '--format=%H %cI'], {
    cwd: root,
    encoding: 'utf8',
  });
  const [commit, date] = status === 0 ? stdout.trim().split(' ') : [];
  // Sources that came without their history say that they do not know.
  if (commit === undefined || date === undefined) return {};
  return { SKEP_COMMIT: JSON.stringify(commit), SKEP_BUILD_DATE: JSON.stringify(date) };
}

function launchable(folder: string, chunks: readonly OutputChunk[]): void {
  const [entry] = chunks.filter((chunk) => chunk.isEntry);
  // What an entry imports is loaded before it can say that this Node is too old for it.
  const early = entry?.imports.filter((name) => !name.startsWith('node:')) ?? [];
  if (!entry || early.length > 0)
    throw new Error(`imported before Node's version is looked at: ${early.join()}`);
  const file = path.join(folder, entry.fileName);
  writeFileSync(file, LAUNCHER + entry.code.replace(/^#!.*\n/, ''));
  chmodSync(file, 0o755);
}

/**
 * Looking must stay quick: these commands load no zod, which alone takes half as long as all of Node, and
 * `list` no built-in module before something of it is called. Nor does a start in the sandbox or on an engine load zod.
 */
function refuseHeavy(chunks: readonly OutputChunk[]): void {
  const byFile = new Map(chunks.map((chunk) => [chunk.fileName, chunk]));
  for (const command of [
    'list',
    'search',
    'info',
    'run',
    'supervise',
    'run-for-command',
    'sandbox',
    'docker',
  ]) {
    const loaded = chunks
      .filter(({ name }) => name === command)
      .flatMap((chunk) => [...importedBy(chunk, chunks)]);
    const path = loaded.find((file) => byFile.get(file)?.name === 'zod');
    if (path !== undefined) throw new Error(`${command} of skep would load zod: ${loaded.join(', ')}`);
    const builtin = loaded.find((file) => file.startsWith('node:'));
    if (command === 'list' && builtin !== undefined)
      throw new Error(`skep list would load ${builtin} at its start`);
  }
}

/** Files that are loaded with a chunk. */
function importedBy(chunk: OutputChunk, chunks: readonly OutputChunk[]): ReadonlySet<string> {
  const loaded = new Set(chunk.imports);
  // A set hands out what is added to it on the way.
  for (const file of loaded)
    for (const one of chunks.find(({ fileName }) => fileName === file)?.imports ?? []) loaded.add(one);
  return loaded;
}

/** What the programs have in common, addresses of the project among it, stands in the workspace's own manifest. */
function writeManifest(folder: string, { name, about, keywords }: (typeof PROGRAMS)[number]): void {
  const { version, license, homepage, repository, bugs } = JSON.parse(
    readFileSync(path.join(root, 'package.json'), 'utf8'),
  ) as Readonly<Record<string, unknown>>;
  const manifest = {
    name,
    version,
    description: about,
    keywords,
    license,
    homepage,
    repository,
    bugs,
    type: name === 'skep' ? 'commonjs' : 'module',
    bin: { [name]: `./${name}.js` },
    files: [
      `${name}.js`,
      ...(name === 'skep' ? ['gateway.mjs', 'cedar.wasm'] : []),
      'chunks',
      'THIRD-PARTY-LICENSES.txt',
    ],
    engines: { node: '>=24' },
    os: ['linux', 'darwin'],
  };
  writeFileSync(path.join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}

function licencesOf(chunks: readonly OutputChunk[]): string {
  const folders = new Set<string>();
  for (const id of chunks.flatMap((chunk) => chunk.moduleIds)) {
    const match = /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id);
    if (match?.[1]) folders.add(match[1]);
  }
  const texts = [...folders].toSorted().map((folder) => {
    const manifest = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8')) as {
      name: string;
      version: string;
      license?: string;
    };
    const file = readdirSync(folder).find((one) => /^(licen[cs]e|copying)/i.test(one));
    const text = file
      ? readFileSync(path.join(folder, file), 'utf8').trim()
      : '(the package carries no licence text)';
    return `${manifest.name} ${manifest.version} (${manifest.license ?? 'see text'})\n\n${text}\n`;
  });
  return texts.join(`\n${'-'.repeat(80)}\n\n`);
}
