import { expect, test } from 'vitest';
import { chooseTransport } from './choose-transport.ts';

const image = { kind: 'image', reference: 'x/y' } as const;
const npm = { kind: 'package', ecosystem: 'npm', name: 'x' } as const;

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
] as const)('%s', (_, inputs, chosen) => {
  expect(chooseTransport(inputs)).toEqual(chosen);
});

test('an HTTP server whose port nobody names is refused', () => {
  const inputs = { source: image, exposedPorts: [1, 2], wanted: 'streamable-http' } as const;
  expect(() => chooseTransport(inputs)).toThrow('declares the ports 1, 2');
});

test('sse is not available', () => {
  expect(() => chooseTransport({ source: image, exposedPorts: [], wanted: 'sse' })).toThrow(
    expect.objectContaining({ code: 'usage/not-available' }),
  );
});
