import { expect, it } from 'vitest';
import { requireNode } from './node-version.ts';

it.each(['v24.0.0', 'v24.21.0', 'v100.1.0'])('runs on %s', (version) => {
  expect(() => requireNode(version)).not.toThrow();
});

it.each(['v20.20.2', 'v9.0.0', 'v23.11.1', ''])(
  'refuses %j with a line that says what to install',
  (version) => {
    expect(() => requireNode(version)).toThrow(
      expect.objectContaining({
        code: 'usage/old-node',
        message: `skep-registry needs Node 24 or newer, and this is ${version}`,
      }),
    );
  },
);
