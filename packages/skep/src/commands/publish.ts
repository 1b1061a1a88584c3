import { resolve } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { atomicWrite } from '@skep/core/files/atomic-write.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { access } from 'node:fs/promises';
import { commonSettings, defineCommand } from '../cli/command.ts';
import type { Context } from '../cli/context.ts';
import type { PublishClaims } from '../publish/registry-doors.ts';
import { readPublication, type Publication } from '../publish/document.ts';
import { firstDocument } from '../publish/first-document.ts';
import { doorSettings, openDoor, requireDoor } from '../publish/open-door.ts';
import { outlookAt } from '../publish/outlook.ts';
import { readProject } from '../publish/project.ts';
import { isVersionTaken, publishAt } from '../publish/registry-doors.ts';
import { shownServer } from '../account/registry-address.ts';

const DOCUMENT = 'server.json';

export const publish = defineCommand({
  usage: 'skep publish [flags] [FILE]',
  summary: 'Publish a server document to a registry',
  description: [
    'The document is server.json of this folder unless another file is named. With --init one is written, of package.json, pyproject.toml, go.mod or the image that is named instead of a file.',
    'Claims say who will see the server; they are those of its first version for as long as there is one. In a pipeline, SKEP_TOKEN_FILE names a file with the token.',
  ],
  examples: [
    { command: 'skep publish --init', what: 'Begin with a document of the project in this folder' },
    { command: 'skep publish --dry-run --claim team=data', what: 'Check it, and see who will see it' },
    { command: 'skep publish --claim team=data', what: 'Publish it to the registry in use' },
  ],
  positionals: [{ name: 'FILE' }],
  settings: [
    ...settingsOf({ group: 'Publishing' }, [
      flag('list', 'claim', 'What readers must hold, as name=value; several values with several flags', {
        placeholder: 'name=value',
      }),
      flag('bool', 'dry-run', 'Check the document and say who would see it; change nothing', {
        default: false,
      }),
      flag('bool', 'init', 'Write a document to begin with', { default: false }),
      flag('string', 'name', 'With --init: the name of the server, like io.github.you/weather', {
        placeholder: 'namespace/name',
      }),
    ]),
    ...doorSettings,
    ...commonSettings,
  ],
  async run({ values, positionals: [file] }, context) {
    if (values.init) return writeFirst(file, values, context);
    if (values.name !== undefined) {
      throw new SkepError('usage/conflict', {
        message: '--name is for --init; a document says its name itself',
        hint: 'leave it out',
      });
    }
    const shown = file ?? DOCUMENT;
    const publication = await readPublication(resolve(context.cwd, shown), shown);
    const claims = claimsIn(values.claim ?? []);
    if (values.dryRun) return tryOut(publication, { claims, flags: values, shown }, context);
    const { terminal } = context;
    for (const fault of publication.faults)
      terminal.err(`Warning: not valid by the official schema: ${printable(fault)}\n`);
    const door = await requireDoor(values, context);
    try {
      const where = await publishAt(door, publication, claims).catch((error: unknown) => {
        throw isVersionTaken(error) ? versionTaken(error, publication, shown) : error;
      });
      terminal.out(`Published ${printable(`${publication.name} ${publication.version} to ${where}`)}\n`);
    } finally {
      door.close();
    }
  },
});

/** A version is published once; who publishes again has forgotten to raise it, and not misspelt something. */
function versionTaken({ message, detail }: SkepError, { kind, name, version }: Publication, shown: string) {
  const raise = `raise "version" in "${shown}"`;
  const gone = kind === 'server' ? `, or delete what is there: skep unpublish ${name}@${version}` : '';
  return new SkepError('publish/refused', { message, detail, hint: raise + gone });
}

interface InitFlags {
  readonly name: string | undefined;
  readonly dryRun: boolean;
}

async function writeFirst(
  source: string | undefined,
  { name, dryRun }: InitFlags,
  { cwd, terminal }: Context,
): Promise<void> {
  const { document, notes } = firstDocument(await readProject(cwd, source), name);
  const text = `${JSON.stringify(document, null, 2)}\n`;
  const path = resolve(cwd, DOCUMENT);
  if (dryRun) terminal.out(text);
  else {
    if (await isThere(path)) {
      throw new SkepError('file/write-failed', {
        message: `"${DOCUMENT}" is there already`,
        hint: 'edit it, or remove it first; --dry-run only shows what would be written',
      });
    }
    await atomicWrite(path, text, { mode: 0o644 });
    terminal.out(`Wrote ${DOCUMENT} for ${printable(String(document['name']))}\n`);
  }
  for (const note of notes) terminal.err(`Note: ${printable(note)}\n`);
  if (!dryRun) terminal.err('Look at it, then try it out: skep publish --dry-run\n');
}

async function isThere(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch (error) {
    return errnoOf(error) !== 'ENOENT';
  }
}

interface Trial {
  readonly claims: PublishClaims | undefined;
  readonly flags: Parameters<typeof openDoor>[0];
  readonly shown: string;
}

/** Fails where publishing would, so that a pipeline stops; with `publish/invalid-document` also where that would warn. */
async function tryOut(
  publication: Publication,
  { claims, flags, shown }: Trial,
  context: Context,
): Promise<void> {
  const { terminal } = context;
  const { kind, name, version, faults } = publication;
  if (faults.length > 0) {
    throw new SkepError('publish/invalid-document', {
      message: `"${shown}" is not valid by the official schema: ${faults.join('; ')}`,
    });
  }
  terminal.out(`${printable(`${name} ${version}`)} is a valid ${kind} document\n`);
  const door = await openDoor(flags, context);
  if (door === undefined) {
    terminal.err('Nobody was asked who would see it: no registry is in use, and --registry names none\n');
    return;
  }
  try {
    const where = shownServer(door.address.server);
    const outlook = await outlookAt(door, publication, claims);
    if (outlook === undefined) {
      terminal.err(`${where} does not tell who would see it\n`);
      return;
    }
    if (outlook.refusal !== undefined) {
      throw new SkepError('access/forbidden', {
        message: `${where} would refuse it: ${outlook.refusal}`,
        hint: 'see who you are there with skep whoami',
      });
    }
    const as = outlook.subject === undefined ? '' : ` from ${outlook.subject}`;
    const registry = door.address.name === undefined ? where : `${door.address.name} at ${where}`;
    terminal.out(`${printable(`${registry} takes it${as}`)}\n`);
    terminal.out(`Who would see it: ${printable(outlook.seenBy)}\n`);
  } finally {
    door.close();
  }
}

/** A claim that is given several times has all those values. Fails with `usage/invalid-value`. */
function claimsIn(texts: readonly string[]): PublishClaims | undefined {
  if (texts.length === 0) return undefined;
  const claims = new Map<string, string[]>();
  for (const text of texts) {
    const at = text.indexOf('=');
    if (at < 1) {
      throw new SkepError('usage/invalid-value', {
        message: `invalid claim ${JSON.stringify(printable(text))}`,
        hint: 'write it as name=value, like --claim team=data',
      });
    }
    const name = text.slice(0, at);
    claims.set(name, [...(claims.get(name) ?? []), text.slice(at + 1)]);
  }
  return Object.fromEntries(
    [...claims].map(([name, all]) => [name, all.length === 1 ? (all[0] ?? '') : all]),
  );
}
