import { MAX_CATALOGUE_BYTES } from '@skep/core/catalog/catalogue-text.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readBytes } from '@skep/core/files/read-limited.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { printableJson, printableLines } from '@skep/core/terminal/printable.ts';
import { commonSettings, defineCommand, formatSettings, type Host } from './command.ts';
import type { RegistryConfig } from '../config/load.ts';
import { storePlace } from '../config/database.ts';
import { storeText, type StorePlace } from '../store/open-store.ts';
import { ingest, type IngestReport } from '../sync/ingest.ts';
import { readConfig, withoutProblems } from './load-config.ts';

export const validate = defineCommand({
  usage: 'skep-registry validate --config FILE | --file CATALOGUE [flags]',
  summary: 'Check a configuration or a catalogue file',
  examples: [
    { command: 'skep-registry validate --config registry.yaml', what: 'would it start?' },
    { command: 'skep-registry validate --file catalog.json --strict', what: 'is every entry usable?' },
  ],
  settings: [
    ...settingsOf({ group: 'What to check' }, [
      flag('path', 'config', 'a configuration file: everything that would stop "serve"', {
        placeholder: 'FILE',
        excludes: ['file'],
      }),
      flag(
        'path',
        'file',
        'a catalogue file: its format, how many entries it has, and which ones would be left out',
        { placeholder: 'CATALOGUE' },
      ),
      flag(
        'bool',
        'strict',
        'fail also when entries would be left out, not only for duplicates and unusable catalogues',
        { default: false, needs: ['file'] },
      ),
    ]),
    ...formatSettings,
    ...commonSettings,
  ],
  async run({ values: { config, file, format, strict } }, host) {
    if (config !== undefined) return validateConfig(host, config, format);
    if (file !== undefined) return validateCatalogue(host, file, { format, strict });
    throw new SkepError('usage/missing-argument', { message: 'nothing to check: give --config or --file' });
  },
});

type Format = 'text' | 'json';

async function validateConfig(host: Host, path: string, format: Format): Promise<void> {
  const loaded = await readConfig(host, { config: path });
  if (format === 'json') {
    const problems = 'problems' in loaded ? loaded.problems : [];
    host.terminal.out(`${printableJson(JSON.stringify({ valid: problems.length === 0, problems }))}\n`);
  }
  const config = withoutProblems(host, { config: path }, loaded);
  if (format === 'text') host.terminal.out(`${configSummary(path, config, storePlace(config, host))}\n`);
}

function configSummary(path: string, config: RegistryConfig, place: StorePlace): string {
  const { sources, registries, auth } = config;
  const names = (items: readonly { readonly name: string }[]): string =>
    items.map(({ name }) => name).join(', ');
  return [
    `"${path}" is valid`,
    `  sources     ${names(sources)}`,
    `  registries  ${names(registries)}`,
    `  sign-in     ${auth.mode}`,
    `  store       ${storeText(place)}`,
  ].join('\n');
}

async function validateCatalogue(
  host: Host,
  path: string,
  { format, strict }: { readonly format: Format; readonly strict: boolean },
): Promise<void> {
  const bytes = await readBytes(path, { maxBytes: MAX_CATALOGUE_BYTES, what: 'catalogue' });
  const { report } = ingest({ bytes, label: path });
  host.terminal.out(
    format === 'json'
      ? `${printableJson(JSON.stringify(report))}\n`
      : printableLines(catalogueSummary(path, report)),
  );
  if (report.replaced > 0) {
    const some = report.replaced === 1 ? 'an entry occurs' : `${report.replaced} entries occur`;
    throw new SkepError('config/invalid', {
      message: `${some} more than once in the catalogue "${path}"`,
      hint: 'keep one of each; "serve" takes the last one',
    });
  }
  const findings = report.skippedTotal + report.warnings.length;
  if (!strict || findings === 0) return;
  throw new SkepError('config/invalid', {
    message: `${findings} findings in the catalogue "${path}"`,
    hint: 'correct what is listed, or leave --strict out',
  });
}

function catalogueSummary(path: string, report: IngestReport): string {
  const kinds = (['server', 'skill', 'plugin'] as const)
    .filter((kind) => report.entries[kind] > 0)
    .map((kind) => `${plural(report.entries[kind], kind)} (${plural(report.versions[kind], 'version')})`);
  const more = report.skippedTotal - report.skipped.length;
  return [
    `"${path}": ${report.format}, ${kinds.length === 0 ? 'nothing usable' : kinds.join(', ')}`,
    ...report.warnings.map((warning) => `  note      ${warning}`),
    ...report.skipped.map(
      ({ name, version, reason }) =>
        `  left out  ${name}${version === undefined ? '' : `@${version}`}: ${reason}`,
    ),
    ...(more > 0 ? [`  left out  and ${more} more`] : []),
    '',
  ].join('\n');
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
