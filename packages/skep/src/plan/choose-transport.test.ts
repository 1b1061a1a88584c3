import { expect, test } from 'vitest';
import type { Source } from '../runtime/runtime.ts';
import type { RunValues } from '../settings/run-settings.ts';
import { chooseTransport } from './choose-transport.ts';

const image = { kind: 'image', reference: 'x/y' } as const;
const npm = { kind: 'package', ecosystem: 'npm', name: 'x' } as const;

interface Inputs {
  readonly source: Source;
  readonly exposedPorts: readonly number[];
  readonly wanted?: RunValues['transport'];
  readonly targetPort?: number;
}

function choose({ source, exposedPorts, wanted: transport, targetPort }: Inputs) {
  const values = { transport, targetPort } as RunValues;
  return chooseTransport({ values, resolved: { source, generatedName: 'x' }, profile: {} }, exposedPorts);
}

test.each([
  ['a package', { source: npm, exposedPorts: [] }, { transport: 'stdio' }],
  ['an image without ports', { source: image, exposedPorts: [] }, { transport: 'stdio' }],
  [
    'an image with one port',
    { source: image, exposedPorts: [3000] },
    { transport: 'streamable-http', targetPort: 3000 },
  ],
  ['an image with several ports', { source: image, exposedPorts: [1, 2] }, { transport: 'stdio' }],
  [
    'what is wanted over the image',
    { source: image, exposedPorts: [1], wanted: 'stdio' },
    { transport: 'stdio' },
  ],
  [
    'a named port',
    { source: npm, exposedPorts: [], wanted: 'streamable-http', targetPort: 8 },
    { transport: 'streamable-http', targetPort: 8 },
  ],
  [
    'the older transport',
    { source: image, exposedPorts: [8], wanted: 'sse' },
    { transport: 'sse', targetPort: 8 },
  ],
] as const)('%s', (_, inputs, chosen) => {
  expect(choose(inputs)).toEqual(chosen);
});

test('an HTTP server whose port nobody names is refused', () => {
  const inputs = { source: image, exposedPorts: [1, 2], wanted: 'streamable-http' } as const;
  expect(() => choose(inputs)).toThrow('declares the ports 1, 2');
});
