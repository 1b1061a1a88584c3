import { resolve } from 'node:path';
import { MAX_CATALOGUE_BYTES, parseCatalogueText } from '@skep/core/catalog/catalogue-text.ts';
import { readCatalogue, type Catalogue } from '@skep/core/catalog/registry-file.ts';
import { headerOf, writeRegistryFile } from '@skep/core/catalog/write-registry-file.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { atomicWrite } from '@skep/core/files/atomic-write.ts';
import { readBytes } from '@skep/core/files/read-limited.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';

/** As many entries left out as are named. */
const SHOWN = 10;

export const registryConvert = defineCommand({
  usage: 'skep registry convert [flags] FILE',
  summary: 'Write a catalogue file in the current format',
  description: [
    'FILE may be a ToolHive catalogue, old or current, pages of an MCP registry, or server documents. The result goes to the terminal unless --out or --in-place is given.',
  ],
  examples: [
    { command: 'skep registry convert registry.json --in-place', what: 'Keep it where it is' },
    { command: 'skep registry convert old.json --out new.json', what: 'Write another file' },
  ],
  positionals: [{ name: 'FILE', required: true }],
  settings: [
    ...settingsOf({ group: 'Output' }, [
      flag('path', 'out', 'File to write', { placeholder: 'file', excludes: ['inPlace'] }),
      flag('bool', 'in-place', 'Write FILE itself anew', { default: false }),
    ]),
    ...commonSettings,
  ],
  async run({ values, positionals: [file = ''] }, { cwd, terminal, clock }) {
    const path = resolve(cwd, file);
    const bytes = await readBytes(path, { maxBytes: MAX_CATALOGUE_BYTES, what: 'catalogue' });
    const catalogue = readCatalogue(bytes, { label: file });
    tellLost(catalogue, values.inPlace, (line) => terminal.err(`${printable(line)}\n`));
    const { value: whole } = parseCatalogueText(bytes, { label: file });
    if (isRecord(whole) && Array.isArray(whole['groups']) && whole['groups'].length > 0)
      terminal.err('Groups are left out: the current format has none; their servers are in it.\n');
    const now = new Date(clock.now()).toISOString();
    const text = writeRegistryFile(catalogue.entries, { version: '1.0.0', updated: now, ...headerOf(whole) });
    const target = values.inPlace ? path : values.out && resolve(cwd, values.out);
    if (target === undefined) return terminal.out(text);
    await atomicWrite(target, text, { mode: 0o644 });
    terminal.out(`Wrote ${catalogue.entries.length} entries to '${target}'\n`);
  },
});

/** Says what could not be converted; a file is not replaced by one that holds less. */
function tellLost(
  { skipped, skippedTotal, warnings }: Catalogue,
  inPlace: boolean,
  tell: (line: string) => void,
): void {
  for (const warning of warnings) tell(`Warning: ${warning}`);
  for (const { name, reason } of skipped.slice(0, SHOWN)) tell(`Left out "${name}": ${reason}`);
  if (skippedTotal > SHOWN) tell(`… and ${skippedTotal - SHOWN} more`);
  if (!inPlace || skippedTotal === 0) return;
  throw new SkepError('catalog/mostly-invalid', {
    message: `${skippedTotal === 1 ? 'an entry' : `${skippedTotal} entries`} cannot be converted, so the file was left as it is`,
    hint: 'correct them, or write another file with --out',
  });
}
