import { describe, expect, test } from 'vitest';
import { buildFailure } from './build-failure.ts';

const EARLIER = [
  'Step 3/21 : RUN ["/bin/sh","/skep/packages.sh"]',
  'skep: going on without the optional packages: git',
];
const output = (...step: string[]): string =>
  [...EARLIER, 'Step 8/21 : RUN ["uv","tool","install"]', ...step, ''].join('\n');
const UNSOLVED = 'error: No solution found when resolving dependencies';

describe('buildFailure', () => {
  test.each([
    [
      'uvx://a-b',
      'cause: Because a-b was not found in the package registry and you require a-b, we can conclude',
    ],
    [
      'uvx://A_b@9.9',
      'cause: Because there is no version of a-b==9.9 and you require a-b==9.9, we can conclude',
    ],
    ['npx://a', 'npm error code E404'],
    ['go://x.test/a', 'go: x.test/a@v1.0.0: module x.test/a: reading http://proxy/x.test/a: 404 Not Found'],
  ])('says of %s that it does not exist: %s', (subject, line) => {
    expect(buildFailure(subject, output(UNSOLVED, line), 'exit 1')).toMatchObject({
      code: 'runtime/package-not-found',
      message: `package "${subject}" was not found`,
    });
  });

  test('does not take a missing dependency for the package', () => {
    const cause =
      'cause: Because there is no version of other==1 and a-b==2 depends on other==1, we can conclude';
    expect(buildFailure('uvx://a-b', output(UNSOLVED, cause), 'exit 1')).toMatchObject({
      code: 'runtime/build-failed',
      message: expect.stringContaining(`${UNSOLVED}; ${cause}`),
    });
  });

  test('says why npm failed, not where its log is', () => {
    const said = output(
      'npm error code 1',
      'npm error path /build/node_modules/x',
      'npm error command sh -c node install.js',
      'npm error   at Socket.<anonymous> {',
      'npm error }',
      'npm error A complete log of this run can be found in: /root/.npm/_logs/x.log',
    );
    expect(buildFailure('npx://a', said, 'exit 1')).toMatchObject({
      message:
        'the image for "npx://a" could not be built: code 1; path /build/node_modules/x; command sh -c node install.js',
    });
  });

  test('repeats the last lines of the step that failed, and nothing of steps that went well', () => {
    const { message } = buildFailure(
      'uvx://a',
      output('one', 'two', 'three', 'cannot open libx.so'),
      'exit 1',
    );
    expect(message).toBe('the image for "uvx://a" could not be built: two; three; cannot open libx.so');
    expect(buildFailure('uvx://a', '', 'exit status 1').message).toContain('exit status 1');
  });

  test.each([
    ['npm error code SELF_SIGNED_CERT_IN_CHAIN', '--ca-cert'],
    ['npm error code E401', 'skep config set-build-auth-file'],
    ['skep: the base image has no package manager (apk, apt-get, dnf)', '--runtime-image'],
    ['write /x: no space left on device', 'skep prune'],
  ])('says what to do about it: %s', (line, hint) => {
    expect(buildFailure('npx://a', output(line), 'exit 1')).toMatchObject({
      code: 'runtime/build-failed',
      hint: expect.stringContaining(hint) as unknown,
    });
  });
});
