import { hasCode } from '@skep/core/errors/skep-error.ts';
import type { Code } from '@skep/core/errors/codes.ts';
import { runtimeEnvironment } from '../cli/runtime-environment.ts';
import type { RuntimeEnvironment } from '../runtime/environment.ts';
import { ok, type Finding, type Inquiry } from './check.ts';
import { lookFor } from './runtimes.ts';

/** What fetches packages for the sandbox, a row each. */
const MANAGERS: readonly {
  readonly scheme: string;
  /** The code of what it fails with where it is not there. */
  readonly missing: Code;
  /** Name and version, for people. */
  readonly find: (environment: RuntimeEnvironment) => Promise<string>;
}[] = [
  {
    scheme: 'npx://',
    missing: 'runtime/npm-missing',
    find: async (environment) => {
      const { findNpm } = await import('../runtime/npm/program.ts');
      await findNpm(environment);
      return 'npm';
    },
  },
  {
    scheme: 'uvx://',
    missing: 'runtime/python-missing',
    find: async (environment) => {
      const { findPython } = await import('../runtime/pypi/python.ts');
      return `Python ${(await findPython(environment)).version}`;
    },
  },
  {
    scheme: 'go://',
    missing: 'runtime/go-missing',
    find: async (environment) => {
      const { findGo } = await import('../runtime/go/toolchain.ts');
      return (await findGo(environment)).version;
    },
  },
];

/** Which kinds of package the sandbox can fetch. */
export async function lookAtPackages(inquiry: Inquiry): Promise<Finding | undefined> {
  const found = await lookFor({ runsImages: false }, inquiry);
  if (!('found' in found)) return undefined;
  const environment = runtimeEnvironment(inquiry.context);
  const told = await Promise.all(
    MANAGERS.map(async ({ scheme, missing, find }) => {
      try {
        return { there: await find(environment) };
      } catch (error) {
        if (!hasCode(error, missing)) throw error;
        return { scheme, why: error.message };
      }
    }),
  );
  const there = told.flatMap((one) => one.there ?? []).join(', ');
  const without = told.flatMap(({ scheme, why }) => (scheme === undefined ? [] : [`no ${scheme}: ${why}`]));
  if (without.length === 0) return ok(there);
  return { verdict: 'note', text: [there, ...without].filter((one) => one !== '').join('; ') };
}
