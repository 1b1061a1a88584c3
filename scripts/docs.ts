import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { clientsPage } from './docs/clients-page.ts';
import { commandsPage } from './docs/commands-page.ts';
import { decisionFaults, decisionIndex, readDecision } from './docs/decisions.ts';
import { doctorPage } from './docs/doctor-page.ts';
import { errorCodesPage } from './docs/error-codes-page.ts';
import type { Page } from './docs/page.ts';
import { projectReferenceFaults } from './docs/project-references.ts';
import { proxyChainPage } from './docs/proxy-chain-page.ts';
import { registryConfigPage } from './docs/registry-config-page.ts';
import { registryRoutesPage } from './docs/registry-routes-page.ts';
import { runConfigSchema } from './docs/run-config-schema.ts';
import { runSettingsPage } from './docs/run-settings-page.ts';
import { markdownTable } from './docs/to-markdown.ts';

/**
 * Writes docs/reference from the product's tables, and the list of decisions. With `--check` it writes nothing and exits 1
 * when a page is stale, missing or left over, when a decision record is too long, and when a reference of a comment or page
 * leads nowhere. SECURITY.md must be about the version of the package.
 */
const NOTE = '<!-- Written by `npm run docs` from the tables in the code; edit those instead. -->';

const PAGES: readonly Page[] = [
  commandsPage,
  runSettingsPage,
  runConfigSchema,
  proxyChainPage,
  registryRoutesPage,
  registryConfigPage,
  errorCodesPage,
  doctorPage,
  clientsPage,
];

const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } });
const root = path.resolve(import.meta.dirname, '..');
const reference = path.join(root, 'docs/reference');
const expected = await renderAll(PAGES);
const stale = await staleFiles(expected);

if (stale.length === 0) console.log(`${expected.size} reference pages are fresh`);
else if (values.check) {
  console.error(
    `Error: stale reference pages: ${stale.join(', ')}\n  run npm run docs and commit the result`,
  );
  process.exitCode = 1;
} else {
  await write(expected);
  console.log(`wrote ${stale.join(', ')}`);
}

const { version } = JSON.parse(await readFile(path.join(root, 'package.json'), 'utf8')) as {
  version: string;
};
// A promise is worth something only with the version that keeps it.
if (!(await readFile(path.join(root, 'SECURITY.md'), 'utf8')).includes(`about version ${version}.`)) {
  console.error(`Error: SECURITY.md is not about version ${version}; read it again and correct it`);
  process.exitCode = 1;
}

await checkDecisions(path.join(root, 'docs/decisions'));
if (values.check) report(await projectReferenceFaults(root));

/** The list is written like the reference; what is wrong with a record is for its author to mend. */
async function checkDecisions(folder: string): Promise<void> {
  const files = (await readdir(folder)).filter((file) => file !== 'README.md');
  const records = await Promise.all(
    files.map(async (file) => readDecision(file, await readFile(path.join(folder, file), 'utf8'))),
  );
  const decisions = records.filter((record) => record !== undefined);
  report([
    ...files
      .filter((_, at) => records[at] === undefined)
      .map((file) => `${file}: its heading is not "# NNNN Title"`),
    ...decisionFaults(decisions),
  ]);
  const index = path.join(folder, 'README.md');
  const text = decisionIndex(decisions);
  if ((existsSync(index) ? await readFile(index, 'utf8') : '') === text) return;
  if (values.check) report(['docs/decisions/README.md is stale; run npm run docs and commit the result']);
  else await writeFile(index, text);
}

function report(faults: readonly string[]): void {
  for (const fault of faults) console.error(`Error: ${fault}`);
  if (faults.length > 0) process.exitCode = 1;
}

/** File name to content, the index included. */
async function renderAll(pages: readonly Page[]): Promise<ReadonlyMap<string, string>> {
  const index: Page = {
    file: 'README.md',
    title: 'Reference',
    brief: '',
    render: () =>
      markdownTable(
        ['Page', 'Content'],
        pages.map(({ file, title, brief }) => [`[${title}](${file})`, brief]),
      ),
  };
  const rendered = await Promise.all(
    [index, ...pages].map(async (page): Promise<[string, string]> => {
      const body = (await page.render()).trimEnd();
      if (page.file.endsWith('.json')) return [page.file, `${body}\n`];
      return [page.file, `${NOTE}\n\n# ${page.title}\n\n${body}\n`];
    }),
  );
  return new Map(rendered);
}

async function staleFiles(expected: ReadonlyMap<string, string>): Promise<string[]> {
  const found = existsSync(reference) ? await readdir(reference) : [];
  const leftOver = found.filter((file) => file.endsWith('.md') && !expected.has(file));
  const changed = await Promise.all(
    [...expected].map(async ([file, text]) => ((await current(file)) === text ? [] : [file])),
  );
  return [...changed.flat(), ...leftOver];
}

async function current(file: string): Promise<string | undefined> {
  const page = path.join(reference, file);
  return existsSync(page) ? readFile(page, 'utf8') : undefined;
}

async function write(expected: ReadonlyMap<string, string>): Promise<void> {
  await mkdir(reference, { recursive: true });
  for (const file of await readdir(reference)) {
    if (file.endsWith('.md') && !expected.has(file)) await rm(path.join(reference, file));
  }
  for (const [file, text] of expected) await writeFile(path.join(reference, file), text);
}
