import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { GO_SERVER, moduleProxyOf } from './fixtures/module-proxy.ts';
import { component, title } from './require.ts';
import { openUser, USERS, type SkepResult, type TestUser } from './skep.ts';

const sandbox = await component('sandbox');
const go = await component('go');
const there = sandbox.available && go.available;

/** Tries to change what it shares with other builds, and then builds, telling what it had to compile of the library. */
const HOSTILE = `
for one in /skep/go-library/*/*-d; do
  target=$(echo "$one" | sed s,/skep/go-library,/stage/build,)
  { echo evil >"$target"; echo evil >>"$one"; chmod u+w "$one"; mv "$one" /stage/tmp/moved; rm -f "$one"; } 2>/dev/null
  ln -sf /etc/passwd "$one" 2>/dev/null
done
echo evil >/skep/go-library/README 2>/dev/null
mkdir /skep/go-library/evil 2>/dev/null
"\${0}-real" "$@" 2>/stage/tmp/said || { cat /stage/tmp/said >&2; exit 1; }
echo "compiled of the library: $(grep -cv '\\.' /stage/tmp/said)" >&2
exit 1
`;

describe.skipIf(!there)(title('the compiled standard library of Go', sandbox, go), () => {
  describe.each(USERS)('as %s', (_who, uid) => {
    let user: TestUser;
    beforeEach(() => {
      user = openUser({ SKEP_RUNTIME: 'sandbox', GONOSUMDB: '*' }, uid);
    });
    afterEach(() => user.end());

    /** `skep run` of a package with that toolchain first on the PATH. */
    async function run(name: string, toolchain: string): Promise<SkepResult> {
      await using proxy = await moduleProxyOf([{ path: name, files: { 'main.go': GO_SERVER } }]);
      const PATH = `${toolchain}/bin:${user.env['PATH'] ?? ''}`;
      return await user.skep(['run', `go://${name}`], { env: { GOPROXY: proxy.url, PATH } });
    }

    test('is compiled once, and no build can change it for another', async () => {
      const toolchain = hostileToolchain(user.dir);
      const first = await run('example.test/first', toolchain);
      expect(first.stderr).toMatch(/^Compiling the standard library of go[\d.]+, once$/m);
      expect(first.stderr).toContain('compiled of the library: 0');
      const library = path.join(user.dir, 'cache/skep/go-library');
      const before = contentOf(library);
      expect(before.length).toBeGreaterThan(500);

      const second = await run('example.test/second', toolchain);
      expect(second.stderr).not.toContain('Compiling');
      expect(second.stderr).toContain('compiled of the library: 0');
      expect(contentOf(library)).toEqual(before);
    }, 300_000);
  });
});

/** The Go of this machine, which does what it likes once it builds a package. */
function hostileToolchain(directory: string): string {
  const real = execFileSync('go', ['env', 'GOROOT'], { encoding: 'utf8' }).trim();
  const root = path.join(directory, 'toolchain');
  mkdirSync(path.join(root, 'bin'), { recursive: true });
  for (const name of ['src', 'lib', 'pkg', 'VERSION', 'go.env'])
    symlinkSync(path.join(real, name), path.join(root, name));
  symlinkSync(path.join(real, 'bin/go'), path.join(root, 'bin/go-real'));
  const outside = `export GOROOT="\${GOROOT:-${root}}"\n[ "$1" = install ] || exec "\${0}-real" "$@"`;
  writeFileSync(path.join(root, 'bin/go'), `#!/bin/sh\n${outside}\n${HOSTILE}`, { mode: 0o755 });
  return root;
}

/** Names, rights and hashes of all files. */
function contentOf(directory: string): readonly string[] {
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8' }).toSorted();
  return names.map((name) => {
    const file = path.join(directory, name);
    const { mode } = statSync(file);
    if (statSync(file).isDirectory()) return `${name} ${mode}`;
    return `${name} ${mode} ${createHash('sha256').update(readFileSync(file)).digest('hex')}`;
  });
}
