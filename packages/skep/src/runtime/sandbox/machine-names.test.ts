import { readFileSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { machineNames } from './machine-names.ts';

test('how this machine resolves names is seen through the directories of its files, so that new ones are', () => {
  const { mounts, links } = machineNames();
  for (const [file, target] of Object.entries(links)) {
    const mount = mounts.find((one) => target.startsWith(`${one.target}/`));
    expect(mount).toMatchObject({ readOnly: true, source: path.dirname(realpathSync(file)) });
    const there = path.join(mount?.source ?? '', path.basename(target));
    expect(readFileSync(there, 'utf8')).toBe(readFileSync(file, 'utf8'));
  }
  expect(Object.keys(links)).toContain('/etc/hosts');
});
