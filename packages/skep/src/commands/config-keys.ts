import { resolve } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readCaBundle } from '@skep/core/fetch/ca-bundle.ts';
import { redactUrl } from '@skep/core/log/redact.ts';
import { suggestion } from '@skep/core/settings/did-you-mean.ts';
import type { Field, FieldValue, Setting } from '@skep/core/settings/field.ts';
import { parseValue } from '@skep/core/settings/parse-value.ts';
import { showDefault, showValue } from '@skep/core/settings/show-value.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { commonSettings, defineCommand, formatSettings } from '../cli/command.ts';
import type { Context } from '../cli/context.ts';
import { appSettings, readAppSettings, updateAppConfig } from '../config/app-config.ts';
import { shownVariable } from './config-build-env.ts';
import { toTable, type Column } from '../print/table.ts';
import { toJsonText } from '../workloads/to-json.ts';

const COLUMNS: readonly Column[] = [
  { title: 'KEY', whole: true },
  { title: 'VALUE', whole: true },
  { title: 'MEANING', least: 12, optional: 1 },
];

type Row = Field & { readonly key: string };

const KEYS: readonly Row[] = appSettings;

/** Beyond what a row says: keys that belong together have a command, and some values are looked at before they are kept. */
interface Handling {
  /** Sets and unsets it, with others. */
  readonly by?: { readonly set: string; readonly unset: string };
  /** Fails for a value that could not be used. */
  readonly check?: (value: string) => Promise<unknown>;
}

const BY_REGISTRY: Handling = {
  by: { set: 'skep config set-registry ADDRESS', unset: 'skep config unset-registry' },
};

const BY_LOGIN: Handling = {
  by: { set: 'skep login ADDRESS', unset: 'skep config unset-registry' },
};

const byBuild = (name: string): Handling => ({
  by: { set: `skep config set-${name}`, unset: `skep config unset-${name}` },
});

const HANDLING: Readonly<Record<string, Handling | undefined>> = {
  registry_api_url: BY_REGISTRY,
  registry_url: BY_REGISTRY,
  local_registry_path: BY_REGISTRY,
  allow_private_registry_ip: BY_REGISTRY,
  'registry_auth.type': BY_LOGIN,
  'registry_auth.oauth.server': BY_LOGIN,
  'registry_auth.oauth.issuer': BY_LOGIN,
  'registry_auth.oauth.client_id': BY_LOGIN,
  'registry_auth.oauth.audience': BY_LOGIN,
  'registry_auth.oauth.scopes': BY_LOGIN,
  'registry_auth.oauth.agreed': BY_LOGIN,
  ca_certificate_path: { check: readCaBundle },
  build_env: byBuild('build-env'),
  build_env_from_secrets: byBuild('build-env'),
  build_env_from_shell: byBuild('build-env'),
  build_auth_files: byBuild('build-auth-file'),
  runtime_configs: {
    by: { set: 'an editor: it is a mapping of the configuration file', unset: 'an editor' },
  },
};

const CA = 'ca_certificate_path';

const KEY = { name: 'KEY', required: true } as const;

export const configSet = defineCommand({
  usage: 'skep config set KEY VALUE',
  summary: 'Set a key of the configuration file',
  description: [keysText()],
  examples: [
    { command: 'skep config set ca_certificate_path ./corporate.pem', what: 'Trusted during builds' },
  ],
  positionals: [KEY, { name: 'VALUE', required: true }],
  settings: [...commonSettings],
  run: ({ positionals: [key = '', value = ''] }, context) => setKey(key, value, context),
});

export const configGet = defineCommand({
  usage: 'skep config get KEY',
  summary: 'Print the value of a key of the configuration file',
  positionals: [KEY],
  settings: [...commonSettings],
  async run({ positionals: [key = ''] }, { places, terminal }) {
    const row = rowOf(key);
    const text = shownValue(row, (await readAppSettings(places)).get(row.name)) ?? showDefault(row);
    if (text === undefined) terminal.err(`${row.key} is not set\n`);
    else terminal.out(`${printable(text)}\n`);
  },
});

export const configUnset = defineCommand({
  usage: 'skep config unset KEY',
  summary: 'Remove a key from the configuration file',
  positionals: [KEY],
  settings: [...commonSettings],
  run: ({ positionals: [key = ''] }, context) => unsetKey(key, context),
});

export const configList = defineCommand({
  usage: 'skep config list [flags]',
  summary: 'List the keys of the configuration file with their values',
  settings: [...formatSettings, ...commonSettings],
  async run({ values }, { places, terminal }) {
    const settings = await readAppSettings(places);
    const keys = KEYS.map((row) => ({ row, value: shownValue(row, settings.get(row.name)) }));
    if (values.format === 'json') {
      const items = keys.map(({ row, value }) => [row.key, value ?? null]);
      return terminal.out(toJsonText(Object.fromEntries(items)));
    }
    const rows = keys.map(({ row, value }) => [row.key, value ?? showDefault(row) ?? '-', row.brief]);
    terminal.out(toTable(COLUMNS, rows, terminal));
  },
});

export const setCaCert = defineCommand({
  usage: 'skep config set-ca-cert FILE',
  summary: 'Trust a certificate authority (PEM) during builds',
  positionals: [{ name: 'FILE', required: true }],
  settings: [...commonSettings],
  run: ({ positionals: [file = ''] }, context) => setKey(CA, file, context),
});

export const getCaCert = defineCommand({
  usage: 'skep config get-ca-cert',
  summary: 'Show which certificate authority is trusted during builds',
  settings: [...commonSettings],
  async run(_input, { places, terminal }) {
    const row = rowOf(CA);
    const path = shownValue(row, (await readAppSettings(places)).get(row.name));
    if (path === undefined) return terminal.out('no CA certificate is configured\n');
    terminal.out(`${printable(path)}\n`);
    await HANDLING[CA]?.check?.(path).catch((error: unknown) => {
      if (!(error instanceof SkepError)) throw error;
      terminal.err(`Warning: ${printable(error.message)}\n`);
    });
  },
});

export const unsetCaCert = defineCommand({
  usage: 'skep config unset-ca-cert',
  summary: 'Trust no other certificate authority during builds',
  settings: [...commonSettings],
  run: (_input, context) => unsetKey(CA, context),
});

async function setKey(key: string, text: string, { places, cwd, env, terminal }: Context): Promise<void> {
  const row = rowOf(key);
  const { by, check } = HANDLING[row.key] ?? {};
  if (by) throw together(row, by.set);
  const read = parseValue(row, text, { label: row.key, code: 'usage/invalid-value' });
  // The file means the same from every directory.
  const value = row.kind === 'path' ? resolve(cwd, text) : read;
  await check?.(showValue(row, value));
  await updateAppConfig(places, { [row.key]: value });
  terminal.err(`${row.key} is now ${printable(showValue(row, value))}\n`);
  if (row.env !== undefined && (env[row.env] ?? '') !== '')
    terminal.err(`Warning: the environment variable ${row.env} is set, and counts instead\n`);
}

async function unsetKey(key: string, { places }: Context): Promise<void> {
  const row = rowOf(key);
  const { by } = HANDLING[row.key] ?? {};
  if (by) throw together(row, by.unset);
  await updateAppConfig(places, { [row.key]: undefined });
}

function together({ key }: Row, command: string): SkepError {
  return new SkepError('usage/invalid-value', {
    message: `${key} is set together with others`,
    hint: `use ${command}`,
  });
}

/** The row of a key, which may be written with dashes or underscores. Fails with `usage/*` naming the key. */
function rowOf(word: string): Row {
  const key = withUnderscores(word);
  const row = KEYS.find((one) => withUnderscores(one.key) === key);
  if (row) return row;
  throw new SkepError('usage/invalid-value', {
    message: `unknown key ${JSON.stringify(printable(word).slice(0, 100))}`,
    hint: suggestion(
      key,
      KEYS.map((one) => one.key),
      'see the keys with skep config list',
    ),
  });
}

const withUnderscores = (key: string): string => key.replaceAll('-', '_');

/** What the file says; an address without what signs in. */
function shownValue(row: Row, setting: Setting | undefined): string | undefined {
  if (setting === undefined || setting.origin === 'default') return undefined;
  const text = showValue(row, shown(setting.value));
  return URL.canParse(text) ? redactUrl(text) : text;
}

/** Variables whose names say that they are secret are masked, as are logins in addresses. */
function shown(value: FieldValue): FieldValue {
  if (typeof value !== 'object' || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      name,
      typeof one === 'string' ? shownVariable(name, one) : one,
    ]),
  );
}

/** The keys that this command takes, for its help. */
function keysText(): string {
  const keys = KEYS.filter((row) => HANDLING[row.key]?.by === undefined);
  return `Keys: ${keys.map((row) => `${row.key} (${row.brief})`).join('; ')}.`;
}
