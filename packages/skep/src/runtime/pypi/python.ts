import { execFile } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { z } from 'zod';
import type { RuntimeEnvironment } from '../environment.ts';

const run = promisify(execFile);

/** A Python of the system's own, with its pip. */
export interface Python {
  /** Real path of the interpreter. */
  readonly program: string;
  readonly version: string;
  /** `3.11`: what the directory of its packages is named after. */
  readonly release: string;
  /** Files and directories beside system software that it needs to start. */
  readonly needs: readonly string[];
  /** The package pip, a directory. */
  readonly pip: string;
  /** The index that pip asks where nothing is set. */
  readonly index: string;
}

const shape = z.object({
  program: z.string(),
  version: z.string(),
  release: z.string().regex(/^3\.\d+$/),
  library: z.string(),
  platform: z.string(),
  shared: z.string(),
  pip: z.string().nullable(),
  index: z.string().nullable(),
});

/** It reads no file of the user and no variable to tell. */
const ASK = `
import json, os, platform, sys, sysconfig
try:
    import pip
    from pip._internal.models.index import PyPI
    found = os.path.dirname(pip.__file__), PyPI.simple_url
except ImportError:
    found = None, None
v = sysconfig.get_config_var
print(json.dumps({
    'program': os.path.realpath(sys.executable), 'version': platform.python_version(),
    'release': '%d.%d' % sys.version_info[:2], 'library': sysconfig.get_path('stdlib'),
    'platform': sysconfig.get_path('platstdlib'),
    'shared': os.path.join(v('LIBDIR') or '', v('INSTSONAME') or v('LDLIBRARY') or ''),
    'pip': found[0], 'index': found[1]}))
`;

type Search = Pick<RuntimeEnvironment, 'env'>;

/**
 * The first `python3` of the PATH that belongs to the system and has pip. One below a home directory would take files of
 * the person along into every sandbox. Throws `runtime/python-missing`.
 */
export async function findPython({ env }: Search): Promise<Python> {
  const directories = (env['PATH'] ?? '').split(path.delimiter).filter((one) => path.isAbsolute(one));
  const files = [...directories, '/usr/bin', '/usr/local/bin'].map((one) => path.join(one, 'python3'));
  const programs = new Set(files.filter((one) => existsSync(one)).map((one) => realpathSync(one)));
  let withoutPip: string | undefined;
  for (const program of programs) {
    if (!/^\/usr\/(?:local\/)?bin\//.test(program)) continue;
    const found = await ask(program);
    if (typeof found === 'object') return found;
    withoutPip ??= found;
  }
  throw new SkepError('runtime/python-missing', {
    message:
      withoutPip === undefined
        ? 'no python3 of the system was found'
        : `the Python at "${withoutPip}" has no pip, which fetches packages of Python`,
  });
}

/** The program itself where it has no pip; undefined where it is no Python. */
async function ask(program: string): Promise<Python | string | undefined> {
  const answer = await run(program, ['-I', '-c', ASK], { cwd: '/', env: {} }).catch(() => undefined);
  const told = shape.safeParse(parsedJson(answer?.stdout ?? '')).data;
  if (told === undefined) return undefined;
  const { version, release, pip, index, library, platform, shared } = told;
  if (pip === null || index === null) return program;
  const isElsewhere = (file: string): boolean => !/^\/usr\/(?:lib\w*|bin)\//.test(file) && existsSync(file);
  const needs = [...new Set([told.program, library, platform, shared])].filter(isElsewhere);
  return { program: told.program, version, release, needs, pip, index };
}
