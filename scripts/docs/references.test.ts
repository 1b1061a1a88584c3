import { expect, test } from 'vitest';
import { anchorsOf, pathFaults, referenceFaults, type Targets } from './references.ts';

const targets: Targets = {
  decisions: new Set(['0007']),
  pages: new Map([['docs/behaviour/run.md', new Set(['names'])]]),
};
const faults = (text: string): readonly string[] => referenceFaults(text, targets);

test.each([
  'RFC 9110 §2.1',
  'RFC 9728 §2.1, §5',
  'JSON-RPC 2.0 §2.1',
  'follows RFC 6750\n * §3.1 to the letter',
  'docs/behaviour/run.md#names',
  'see docs/behaviour/run.md',
  'for why, see decision 0007',
])('%j leads somewhere', (text) => {
  expect(faults(text)).toEqual([]);
});

test.each([
  'the page §2.1',
  'specification §2.1',
  'docs/behaviour/run.md#name',
  'docs/behaviour/walk.md',
  'for why, see decision 0008',
  'what the seed says',
  'flags (contract, "Telemetry")',
  'spec run-proxy',
])('%j leads nowhere', (text) => {
  expect(faults(text)).not.toEqual([]);
});

test('anchors are those that GitHub makes of headings', () => {
  expect([...anchorsOf('# Behaviour of `skep run`\ntext\n## Taken names\n')]).toEqual([
    'behaviour-of-skep-run',
    'taken-names',
  ]);
});

test('a page names files and folders that are there', () => {
  const there = new Set(['packages/core/src/errors/codes.ts', 'packages/proxy/src/steps', 'e2e/skep.ts']);
  const faultsOf = (page: string): readonly string[] => pathFaults(page, (file) => there.has(file));
  expect(faultsOf('`core/errors/codes.ts`, `proxy/steps` and `e2e/skep.ts`, not `skep run`')).toEqual([]);
  expect(faultsOf('`core/errors/gone.ts`')).toEqual(['"core/errors/gone.ts" is not there']);
});
