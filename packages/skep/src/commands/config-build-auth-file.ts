import { resolve } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readText } from '@skep/core/files/read-limited.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import type { Context } from '../cli/context.ts';
import { loadAppConfig, updateAppConfig } from '../config/app-config.ts';
import { checkLoginFile } from '../plan/build-access.ts';
import { openProvider, openProviderToKeep } from '../secrets/open-provider.ts';
import { buildAuthSecret } from '../secrets/reference.ts';
import { checkValue } from '../secrets/secret-value.ts';

const MAX_BYTES = 64 * 1024;
const TYPE = { name: 'TYPE', required: true };

export const setBuildAuthFile = defineCommand({
  usage: 'skep config set-build-auth-file TYPE [FILE]',
  summary: 'Store a login file for whatever fetches packages',
  description: [
    'TYPE is npmrc, for npx://, or netrc, for uvx:// and go://. The file, or standard input, is kept by the secrets manager; no image, server or run configuration ever holds it.',
  ],
  examples: [{ command: 'skep config set-build-auth-file npmrc ~/.npmrc', what: 'The logins that npm has' }],
  positionals: [TYPE, { name: 'FILE' }],
  settings: [...commonSettings],
  async run({ positionals: [type = '', file] }, context) {
    const kind = checkLoginFile(type);
    const content = await contentOf(kind, file, context);
    const { change, kind: provider } = await openProviderToKeep(context);
    if (!change) {
      throw new SkepError('secrets/read-only', { message: `the ${provider} secrets provider only reads` });
    }
    await change((secrets) => secrets.set(buildAuthSecret(kind), content));
    await updateAppConfig(context.places, { [`build_auth_files.${kind}`]: 'secret' });
    context.terminal.err(`The ${kind} of builds is stored (${provider})\n`);
  },
});

export const getBuildAuthFile = defineCommand({
  usage: 'skep config get-build-auth-file',
  summary: 'Show which login files are stored for whatever fetches packages',
  settings: [...commonSettings],
  async run(_input, { places, terminal }) {
    const { buildAuthFiles = {} } = await loadAppConfig(places);
    const kinds = Object.keys(buildAuthFiles).map(checkLoginFile);
    terminal.out(kinds.length === 0 ? 'no login file is stored for builds\n' : `${kinds.join('\n')}\n`);
  },
});

export const unsetBuildAuthFile = defineCommand({
  usage: 'skep config unset-build-auth-file TYPE',
  summary: 'Remove a login file of builds',
  positionals: [TYPE],
  settings: [...commonSettings],
  async run({ positionals: [type = ''] }, context) {
    const kind = checkLoginFile(type);
    const { buildAuthFiles = {} } = await loadAppConfig(context.places);
    if (buildAuthFiles[kind] === undefined) return;
    await updateAppConfig(context.places, { [`build_auth_files.${kind}`]: undefined });
    const { change } = await openProvider(context);
    await change?.((secrets) => void secrets.delete(buildAuthSecret(kind)));
  },
});

async function contentOf(
  kind: string,
  file: string | undefined,
  { cwd, readInput }: Context,
): Promise<string> {
  if (file !== undefined) {
    const text = await readText(resolve(cwd, file), { maxBytes: MAX_BYTES, what: 'login file' });
    return checkValue(Buffer.from(text), kind);
  }
  if (readInput) return checkValue(await readInput(MAX_BYTES), kind);
  throw new SkepError('usage/missing-argument', {
    message: 'missing argument FILE',
    hint: `name the file, or pipe it: … | skep config set-build-auth-file ${kind}`,
  });
}
