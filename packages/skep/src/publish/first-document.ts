import { SERVER_SCHEMA_URL } from '@skep/core/catalog/server-json.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Project } from './project.ts';

/** A server document to begin with, and what its publisher has to look at. */
export interface FirstDocument {
  readonly document: Readonly<Record<string, unknown>>;
  readonly notes: readonly string[];
}

const MAX_DESCRIPTION = 100;
const FIRST_VERSION = '0.1.0';

/** Makes the document of a project. Fails with `usage/missing-argument` where nothing tells its name. */
export function firstDocument(project: Project, name: string | undefined): FirstDocument {
  const { package: from, repository, version = FIRST_VERSION, websiteUrl } = project;
  const fullName = name ?? project.fullName ?? derivedName(project);
  const notes: string[] = [];
  if (project.version === undefined)
    notes.push(`${project.source} says no version: ${FIRST_VERSION} stands there now`);
  const said = project.description ?? `The MCP server ${project.shortName}`;
  if (project.description === undefined) notes.push(`${project.source} has no description: write one`);
  const characters = Array.from(said);
  const isLong = characters.length > MAX_DESCRIPTION;
  if (isLong) notes.push(`the description was longer than ${MAX_DESCRIPTION} characters, and is cut`);
  if (from === undefined)
    notes.push(
      'it has no package yet: add an image of it, or the URL where it is served, to packages or remotes',
    );
  return {
    notes,
    document: {
      $schema: SERVER_SCHEMA_URL,
      name: fullName,
      description: isLong ? `${characters.slice(0, MAX_DESCRIPTION - 1).join('')}…` : said,
      version,
      ...(websiteUrl === undefined ? {} : { websiteUrl }),
      ...(repository === undefined
        ? {}
        : {
            repository: { url: repository.url, source: sourceOf(repository.url), ...subfolderOf(repository) },
          }),
      ...(from === undefined
        ? {}
        : {
            packages: [
              {
                registryType: from.registryType,
                identifier: from.identifier,
                // An image says its version itself.
                ...(from.registryType === 'oci' ? {} : { version }),
                transport: { type: 'stdio' },
              },
            ],
          }),
    },
  };
}

function subfolderOf({ subfolder }: NonNullable<Project['repository']>): object {
  return subfolder === undefined ? {} : { subfolder };
}

const FORGES: Readonly<Record<string, string>> = { 'github.com': 'github', 'gitlab.com': 'gitlab' };

function sourceOf(url: string): string {
  return FORGES[new URL(url).hostname] ?? 'git';
}

/** `io.github.owner/name` of a repository at github.com; at any other host its name turned round. */
function derivedName({ repository, shortName, source }: Project): string {
  const url = repository === undefined ? undefined : new URL(repository.url);
  const [, owner = ''] = url?.pathname.split('/') ?? [];
  const forge = FORGES[url?.hostname ?? ''];
  const namespace =
    url === undefined
      ? undefined
      : forge === undefined
        ? url.hostname.split('.').toReversed().join('.')
        : `io.${forge}.${owner}`;
  const name = shortName.replaceAll(/[^\w.-]/gu, '-').replaceAll(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/gu, '');
  if (namespace !== undefined && name !== '' && !namespace.endsWith('.')) return `${namespace}/${name}`;
  throw new SkepError('usage/missing-argument', {
    message: `${source} does not tell what the server is to be called`,
    hint: `say it with --name, like --name io.github.you/${name === '' ? 'server' : name}`,
  });
}
