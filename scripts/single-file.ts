import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';

/**
 * `npm run build:single`: makes of dist/skep and the Node that runs this one file that needs no Node, with its checksum
 * (decision 0237). `--program DIR` takes another packed program, `--out DIR` writes elsewhere than dist/single, and
 * `--fast` packs larger and in a tenth of the time.
 */
const UNAMES: Readonly<Record<string, string>> = { x64: 'Linux-x86_64', arm64: 'Linux-aarch64' };

const root = path.resolve(import.meta.dirname, '..');
const { values } = parseArgs({
  options: {
    program: { type: 'string', default: path.join(root, 'dist/skep') },
    out: { type: 'string', default: path.join(root, 'dist/single') },
    fast: { type: 'boolean', default: false },
  },
});

const faults = [
  process.platform === 'linux' && process.arch in UNAMES
    ? ''
    : 'the single file is made on Linux only, for the processor it is made on',
  existsSync(path.join(values.program, 'skep.js'))
    ? ''
    : `no packed program in ${values.program}: npm run build`,
  existsSync(nodeLicence())
    ? ''
    : 'this Node lies without its licence, which must go along: npm run build:single brings its own',
].filter(Boolean);
for (const fault of faults) console.error(`Error: ${fault}`);
if (faults.length > 0) process.exitCode = 1;
else build();

/** Beside `bin` in Node's own packages. */
function nodeLicence(): string {
  return path.join(path.dirname(path.dirname(process.execPath)), 'LICENSE');
}

function build(): void {
  const stage = mkdtempSync(path.join(os.tmpdir(), 'skep-single-'));
  try {
    mkdirSync(path.join(stage, 'bin'));
    cpSync(process.execPath, path.join(stage, 'bin/node'));
    cpSync(values.program, path.join(stage, 'skep'), { recursive: true });
    cpSync(nodeLicence(), path.join(stage, 'NODE-LICENSE.txt'));
    write(archiveOf(stage));
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
}

/** The same content gives the same bytes, whoever packs it and when. */
function archiveOf(folder: string): Buffer {
  const same = [
    '--sort=name',
    '--mtime=@0',
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    '--mode=a+rX,u+w,go-w',
  ];
  const options = { maxBuffer: 1024 ** 3 };
  const tar = execFileSync('tar', ['-c', ...same, '-C', folder, 'bin', 'skep', 'NODE-LICENSE.txt'], options);
  return execFileSync('gzip', [values.fast ? '-1' : '-9', '--no-name'], { ...options, input: tar });
}

function write(payload: Buffer): void {
  const manifest = JSON.parse(readFileSync(path.join(values.program, 'package.json'), 'utf8')) as {
    version: string;
  };
  const template = readFileSync(path.join(root, 'scripts/single-file.sh'), 'utf8');
  const facts: Readonly<Record<string, string>> = {
    VERSION: manifest.version,
    SYSTEM: `linux-${process.arch}`,
    NODE: process.versions.node,
    UNAME: UNAMES[process.arch] ?? '',
    DIGEST: createHash('sha256').update(payload).digest('hex').slice(0, 16),
    PAYLOAD_LINE: String(template.split('\n').length),
  };
  const script = template.replaceAll(/@([A-Z_]+)@/g, (_, name: string) => facts[name] ?? '');
  const file = Buffer.concat([Buffer.from(script), payload]);
  const name = `skep-linux-${process.arch}`;
  mkdirSync(values.out, { recursive: true });
  writeFileSync(path.join(values.out, name), file, { mode: 0o755 });
  const digest = createHash('sha256').update(file).digest('hex');
  writeFileSync(path.join(values.out, `${name}.sha256`), `${digest}  ${name}\n`);
  console.log(`${path.join(values.out, name)}: ${Math.round(file.length / 1024 ** 2)} MiB, sha256 ${digest}`);
}
