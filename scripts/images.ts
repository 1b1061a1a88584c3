import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';

/**
 * `npm run build:images`: makes an image of each packed program (deploy/Dockerfile, decision 0409) and prints their names,
 * PREFIX and the program's name with the version as tag. `--base NAME@DIGEST` builds on another image with Node, `--engine
 * podman` with another engine, and `--packed DIR` from other packed programs than those of dist.
 */
const root = path.resolve(import.meta.dirname, '..');
const { values } = parseArgs({
  options: {
    base: { type: 'string' },
    prefix: { type: 'string', default: '' },
    tag: { type: 'string' },
    engine: { type: 'string', default: 'docker' },
    packed: { type: 'string', default: path.join(root, 'dist') },
  },
});

const missing = ['skep-registry', 'skep'].find((name) => !existsSync(path.join(values.packed, name)));
if (missing !== undefined) {
  console.error(`Error: ${missing} is not packed in ${values.packed}: npm run build`);
  process.exitCode = 1;
} else {
  for (const program of ['skep-registry', 'skep']) build(program);
}

function build(program: string): void {
  const { version } = JSON.parse(readFileSync(path.join(values.packed, program, 'package.json'), 'utf8')) as {
    readonly version: string;
  };
  const image = `${values.prefix}${program}:${values.tag ?? version}`;
  const facts = { ...(values.base !== undefined && { BASE: values.base }), VERSION: version, ...origin() };
  const args = Object.entries(facts).flatMap(([name, value]) => ['--build-arg', `${name}=${value}`]);
  const file = path.join(root, 'deploy/Dockerfile');
  execFileSync(
    values.engine,
    ['build', '--quiet', '--file', file, '--target', program, '--tag', image, ...args, values.packed],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  console.log(image);
}

/** Of the commit, so that the same commit says the same. */
function origin(): Readonly<Record<string, string>> {
  try {
    const said = execFileSync('git', ['log', '-1', '--format=%H %cI'], { cwd: root, encoding: 'utf8' });
    const [REVISION = '', CREATED = ''] = said.trim().split(' ');
    return { REVISION, CREATED };
  } catch {
    // Sources that came without their history say that they do not know.
    return {};
  }
}
