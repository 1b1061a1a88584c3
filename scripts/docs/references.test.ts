import { expect, test } from 'vitest';
import { anchorsOf, referenceFaults, type Targets } from './references.ts';

const targets: Targets = {
  decisions: new Set(['0007']),
  pages: new Map([['docs/behaviour/run.md', new Set(['names'])]]),
};
const faults = (text: string): readonly string[] => referenceFaults(text, targets);
// Put together here, or this file would hold what the gate looks for.
const section = (before: string): string => `${before} ${'\u00a7'}2.1`;

test.each([
  section('RFC 9110'),
  section('RFC 9728').replace('2.1', '2.1, \u00a75'),
  section('JSON-RPC 2.0'),
  `follows RFC 6750\n * \u00a73.1 to the letter`,
  'docs/behaviour/run.md#names',
  'see docs/behaviour/run.md',
  'for why, see decision 0007',
])('%j leads somewhere', (text) => {
  expect(faults(text)).toEqual([]);
});

test.each([
  section('the page'),
  section('specification'),
  'docs/behaviour/run.md#name',
  'docs/behaviour/walk.md',
  'for why, see decision 0008',
  `what ${'the'} seed says`,
  `flags (${'contract,'} "Telemetry")`,
  `${'spec'} run-proxy`,
])('%j leads nowhere', (text) => {
  expect(faults(text)).not.toEqual([]);
});

test('anchors are those that GitHub makes of headings', () => {
  expect([...anchorsOf('# Behaviour of `skep run`\ntext\n## Taken names\n')]).toEqual([
    'behaviour-of-skep-run',
    'taken-names',
  ]);
});
