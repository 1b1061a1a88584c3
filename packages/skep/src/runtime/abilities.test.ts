import { globSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { RUNTIME_KINDS } from '../settings/identity.ts';

const source = dirname(import.meta.dirname);
const KIND = new RegExp(String.raw`['"\`](?:${RUNTIME_KINDS.join('|')})['"\`]`);

/** Files that name a kind of runtime in a text of its own. */
function filesThatNameKinds(): readonly string[] {
  const files = globSync('**/*.ts', { cwd: source }).filter((file) => !/\.(?:test|fixture)\.ts$/.test(file));
  return files.filter((file) => KIND.test(readFileSync(`${source}/${file}`, 'utf8')));
}

test('no kind of runtime is named outside of runtime/: what a runtime can is asked of itself', () => {
  const elsewhere = filesThatNameKinds().filter((file) => !file.startsWith('runtime/'));
  expect(elsewhere).toEqual(['settings/identity.ts']);
});
