import * as shape from '@skep/core/settings/shape.ts';

/** What an image, or whoever starts it, says for itself. */
const OWN: ReadonlySet<string> = new Set(
  'PATH HOME USER SHELL PWD HOSTNAME TERM LANG LC_ALL LD_PRELOAD LD_LIBRARY_PATH'.split(' '),
);
const UNSAFE = /[`\\\r\n";<>|]|\$[({]|&&/;

const value = shape.textThat(
  (text) => !text.includes('\0') && !UNSAFE.test(text),
  'has a character that means something to a shell',
);

/** Variables that the server of a package has unless a run says otherwise. */
export const runtimeEnvShape = shape.recordOf(
  value,
  (name) => /^[A-Z][A-Z0-9_]*$/.test(name) && !OWN.has(name),
);

/** The line of a Dockerfile that says them; none where there are none. */
export function runtimeEnvLines(env: Readonly<Record<string, string>> = {}): readonly string[] {
  return Object.entries(env).map(([name, text]) => `ENV ${name}="${text.replaceAll('$', '\\$')}"`);
}
