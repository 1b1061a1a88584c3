import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { fetchLimits } from '@skep/cli/runtime/sandbox/run-to-end.ts';
import {
  pythonIndexOf,
  PYTHON_SERVER,
  pythonServer,
  sourceOf,
  wheelOf,
  type FixtureDistribution,
} from './fixtures/python-index.ts';
import { component, title } from './require.ts';
import { ask, openUser, USERS, type SkepResult, type TestUser } from './skep.ts';

const sandbox = await component('sandbox');
const python = await component('python');
const there = sandbox.available && python.available;

describe.skipIf(!there)(title('fetching a hostile Python package', sandbox, python), () => {
  describe.each(USERS)('as %s', (_who, uid) => {
    let user: TestUser;
    let secrets: string;
    beforeEach(() => {
      user = openUser({ SKEP_RUNTIME: 'sandbox', TEST_SECRET: 'in-the-environment' }, uid);
      secrets = path.join(user.dir, 'private-project');
      mkdirSync(secrets);
      writeFileSync(path.join(secrets, 'secret.txt'), 'TOP-SECRET-42');
      if (uid !== undefined) execFileSync('chown', ['-R', String(uid), secrets]);
    });
    afterEach(() => user.end());

    /** `skep run` of the first project, from an index with all of them. */
    async function run(all: readonly FixtureDistribution[]): Promise<SkepResult> {
      await using index = await pythonIndexOf(all);
      return await user.skep(['run', `uvx://${all[0]?.name ?? ''}`], { env: { PIP_INDEX_URL: index.url } });
    }

    function expectRefused({ code, stderr }: SkepResult, why: string): void {
      expect(code, stderr).toBe(1);
      expect(stderr).toContain(why);
      const left = user.leftFiles().filter((name) => /packages\/.|runconfigs\/.|sandbox\/./.test(name));
      expect(left).toEqual([]);
    }

    /** What a file of the fetched package holds. */
    function fetched(name: string): string {
      const file = user.leftFiles().find((one) => one.endsWith(`site-packages/${name}`));
      return file === undefined ? '' : readFileSync(path.join(user.dir, file), 'utf8');
    }

    test('gets an honest one with its dependencies by the login of the user, its files from another host', async () => {
      const needed = wheelOf('needed', { files: { 'needed.py': '' } });
      const honest = pythonServer('honest', {
        files: { 'honest.py': `import needed\n${PYTHON_SERVER}` },
        requires: ['needed'],
      });
      await using files = await pythonIndexOf([honest, needed]);
      await using index = await pythonIndexOf([honest, needed], { login: 'me:s3cret', files: files.url });
      const host = new URL(index.url).hostname;
      writeFileSync(path.join(user.dir, '.netrc'), `machine ${host} login me password s3cret\n`);
      const ran = await user.skep(['run', 'uvx://honest'], { env: { PIP_INDEX_URL: index.url } });
      expect(ran.code, ran.stderr).toBe(0);
      expect(await ask(ran.stdout.trim(), 'tools/list')).toHaveProperty('result.tools');
      expect(files.requests.map(({ authorization }) => authorization)).toEqual([undefined, undefined]);
      expect(ran.stderr).not.toContain('s3cret');
    });

    test('builds a source distribution where its code reads nothing, reaches nothing and writes nothing', async () => {
      const mark = path.join(user.dir, 'code-ran');
      await using stranger = await pythonIndexOf([]);
      const source = sourceOf('hostile-build', {
        'pyproject.toml': '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        'backend.py': hostileBackend({ secrets, mark, port: Number(new URL(stranger.url).port) }),
        'hostile_build.py': PYTHON_SERVER,
      });
      const ran = await run([source]);
      expect(ran.code, ran.stderr).toBe(0);
      expect(JSON.parse(fetched('found.json'))).toEqual({
        secret: 'FileNotFoundError',
        mark: expect.stringMatching(/Error$/) as string,
        connect: 'ConnectionRefusedError',
        environment: [],
      });
      expect(existsSync(mark)).toBe(false);
      expect(stranger.requests).toEqual([]);
    });

    test('lets a build start no more processes than a fetch may have', async () => {
      const { pids } = fetchLimits();
      const source = sourceOf('hostile-forks', {
        'pyproject.toml': '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        'backend.py': `${WHEEL_BACKEND}\n${forks(pids + 200)}`,
        'hostile_forks.py': PYTHON_SERVER,
      });
      const ran = await run([source]);
      expect(ran.code, ran.stderr).toBe(0);
      expect(Number(fetched('forked.txt'))).toBeGreaterThan(100);
      expect(Number(fetched('forked.txt'))).toBeLessThanOrEqual(pids);
    });

    test('refuses one whose build puts a link to the user into what is kept', async () => {
      const source = sourceOf('hostile-link', {
        'pyproject.toml': '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        'backend.py': `import os\nif not os.path.lexists('/app/leak'): os.symlink(${JSON.stringify(secrets)}, '/app/leak')\n${WHEEL_BACKEND}`,
        'hostile_link.py': PYTHON_SERVER,
      });
      expectRefused(await run([source]), '"leak" is a link out of it');
    });

    test('is not led out of what is kept by a build that makes a link of its folder for programs', async () => {
      const source = sourceOf('hostile-bin', {
        'pyproject.toml': '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        'backend.py': `import os\nif not os.path.islink('/app/bin'):\n    os.rename('/app/bin', '/app/was')\n    os.symlink(${JSON.stringify(secrets)}, '/app/bin')\n${WHEEL_BACKEND}`,
        'hostile_bin.py': PYTHON_SERVER,
      });
      const ran = await run([source]);
      expect(ran.code, ran.stderr).toBe(1);
      expect(lstatSync(path.join(secrets, 'secret.txt')).isFile()).toBe(true);
      expect(existsSync(path.join(secrets, 'python'))).toBe(false);
    });

    test.each(['../../../../escaped', '/tmp/skep-escaped'])(
      'writes no file of a wheel to %s',
      async (name) => {
        const ran = await run([pythonServer('hostile-zip', { files: { 'hostile_zip.py': PYTHON_SERVER, [name]: 'x' } })]); // prettier-ignore
        expect(existsSync('/tmp/skep-escaped')).toBe(false);
        expect(user.leftFiles().filter((one) => /packages\/.*escaped/.test(one) && !one.includes('site-packages'))).toEqual([]); // prettier-ignore
        if (ran.code !== 0) expectRefused(ran, 'could not be fetched');
      },
    );

    test('lets code of a .pth file run where the server runs, and nowhere else', async () => {
      const mark = path.join(user.dir, 'code-ran');
      const seen = '/home/skep/pth-ran';
      const line = (file: string): string => `import os; os.path.isdir(os.path.dirname(${JSON.stringify(file)})) and open(${JSON.stringify(file)}, 'w').close()\n`; // prettier-ignore
      const hostile = pythonServer('hostile-pth', {
        files: { 'hostile_pth.py': PYTHON_SERVER, 'hostile.pth': line(mark) + line(seen) },
      });
      const ran = await run([hostile]);
      expect(ran.code, ran.stderr).toBe(0);
      expect(existsSync(mark)).toBe(false);
      expect(user.leftFiles().filter((name) => name.endsWith('home/pth-ran'))).toHaveLength(1);
    });

    test.each([
      ['a file of the user', () => `file://${secrets}/private-1.0.0-py3-none-any.whl`],
      ['a git repository', () => 'git+https://127.0.0.1:9/private.git'],
      ['another address', () => 'http://127.0.0.1:9/private-1.0.0-py3-none-any.whl'],
    ])('takes no dependency from %s', async (_what, place) => {
      const hostile = pythonServer('hostile-dependency', { requires: [`private @ ${place()}`] });
      const ran = await run([hostile]);
      expectRefused(ran, 'which is not in a package index');
      expect(ran.stderr).toContain('depends on "');
    });

    test('makes no script elsewhere whose name leads there', async () => {
      const scripts = ['../../escaped = hostile_script:main'];
      const ran = await run([
        wheelOf('hostile-script', { files: { 'hostile_script.py': PYTHON_SERVER }, scripts }),
      ]);
      expect(ran.code, ran.stderr).toBe(0);
      for (const name of user.leftFiles().filter((one) => one.endsWith('/escaped'))) {
        expect(name).toMatch(/packages\/pypi-hostile-script@[^/]+\/bin\/escaped$/);
      }
    });

    test('takes no file that is another than the index says', async () => {
      const digest = '0'.repeat(64);
      const ran = await run([{ ...pythonServer('hostile-file'), digest }]);
      expectRefused(ran, 'is not the one that the package index describes');
    });

    test('lists the programs of a package of which none is named like it', async () => {
      const scripts = ['one = many:main', 'two = many:main'];
      const ran = await run([wheelOf('many', { files: { 'many.py': PYTHON_SERVER }, scripts })]);
      expectRefused(ran, 'cannot tell what to run in package "many@1.0.0": its programs are one, two');
    });

    test('says that there is none of that name', async () => {
      await using index = await pythonIndexOf([]);
      const ran = await user.skep(['run', 'uvx://absent'], { env: { PIP_INDEX_URL: index.url } });
      expectRefused(ran, 'package "absent" was not found in the Python package index');
    });
  });
});

/** Makes the one wheel of a source distribution, whose module is named like it (PEP 517). */
const WHEEL_BACKEND = `
import glob, os, zipfile
FOUND = {}
def build_wheel(directory, config_settings=None, metadata_directory=None):
    module = [one for one in glob.glob('*.py') if one != 'backend.py'][0][:-3]
    name, info = module.replace('_', '-'), module + '-1.0.0.dist-info'
    files = {
        module + '.py': open(module + '.py').read(),
        info + '/METADATA': 'Metadata-Version: 2.1\\nName: ' + name + '\\nVersion: 1.0.0\\n',
        info + '/WHEEL': 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n',
        info + '/entry_points.txt': '[console_scripts]\\n' + name + ' = ' + module + ':main\\n',
        **FOUND,
    }
    files[info + '/RECORD'] = ''.join(one + ',,\\n' for one in [*files, info + '/RECORD'])
    file = module + '-1.0.0-py3-none-any.whl'
    with zipfile.ZipFile(os.path.join(directory, file), 'w') as archive:
        for one, text in files.items():
            archive.writestr(one, text)
    return file
`;

/** Starts as many processes as it can while the wheel is made, up to a number, and ends them. */
const forks = (count: number): string => `
import os, signal
def forked():
    started = []
    try:
        while len(started) < ${count}:
            child = os.fork()
            if child == 0:
                signal.pause()
            started.append(child)
    except OSError:
        pass
    for child in started:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return str(len(started))
make_wheel = build_wheel
def build_wheel(*args, **kwargs):
    FOUND['forked.txt'] = forked()
    return make_wheel(*args, **kwargs)
`;

function hostileBackend({ secrets, mark, port }: { secrets: string; mark: string; port: number }): string {
  return `${WHEEL_BACKEND}
import json, socket
def attempt(action):
    try:
        return str(action())
    except Exception as error:
        return type(error).__name__
FOUND['found.json'] = json.dumps({
    'secret': attempt(lambda: open(${JSON.stringify(`${secrets}/secret.txt`)}).read()),
    'mark': attempt(lambda: open(${JSON.stringify(mark)}, 'w')),
    'connect': attempt(lambda: socket.create_connection(('127.0.0.1', ${port}))),
    'environment': [key for key, value in os.environ.items() if 'in-the-environment' in value],
})
`;
}
