import { join } from 'node:path';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { readText } from '@skep/core/files/read-limited.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';

/** What the files of a project, or the name of an image, say for a server document. */
export interface Project {
  /** What it was read from, for people. */
  readonly source: string;
  /** The official name, where the project says it. */
  readonly fullName?: string;
  /** Its own name, without a namespace. */
  readonly shortName: string;
  readonly version?: string;
  readonly description?: string;
  readonly websiteUrl?: string;
  readonly repository?: { readonly url: string; readonly subfolder?: string };
  /** Where it can be had from; absent where its ecosystem has no packages that clients know. */
  readonly package?: { readonly registryType: 'npm' | 'pypi' | 'oci'; readonly identifier: string };
}

const MAX_BYTES = 1024 * 1024;
const MANIFESTS: Readonly<Record<string, (text: string, file: string) => Project | Promise<Project>>> = {
  'package.json': ofPackageJson,
  'pyproject.toml': ofPyproject,
  'go.mod': ofGoMod,
};

/**
 * Reads the project of a folder, by the manifest or image that is named or the one manifest there is. Fails with
 * `publish/no-project`, and with `file/*` for a file that cannot be read.
 */
export async function readProject(folder: string, named: string | undefined): Promise<Project> {
  if (named !== undefined) {
    const [, base = named] = /([^/\\]+)$/u.exec(named) ?? [];
    const read = MANIFESTS[base];
    return read === undefined ? ofImage(named) : read(await textOf(join(folder, named)), named);
  }
  const there: Project[] = [];
  for (const [file, read] of Object.entries(MANIFESTS)) {
    const text = await textOf(join(folder, file)).catch(unlessAbsent);
    if (text !== undefined) there.push(await read(text, file));
  }
  const [only, ...others] = there;
  if (only !== undefined && others.length === 0) return only;
  const found = there.map(({ source }) => source).join(', ');
  throw new SkepError('publish/no-project', {
    message:
      only === undefined ? 'there is no project here to begin from' : `several manifests are here: ${found}`,
    hint: `name one of ${Object.keys(MANIFESTS).join(', ')}, or an image: skep publish --init ghcr.io/you/server:1.0.0`,
  });
}

function textOf(path: string): Promise<string> {
  return readText(path, { maxBytes: MAX_BYTES, what: 'manifest' });
}

function unlessAbsent(error: unknown): undefined {
  if (!hasCode(error, 'file/not-found')) throw error;
}

function ofPackageJson(text: string, file: string): Project {
  const manifest = parsedJson(text);
  if (!isRecord(manifest)) throw unreadable(file, 'it is no JSON object');
  const name = textMember(manifest, 'name');
  if (name === undefined) throw unreadable(file, 'it has no name');
  const given = manifest['repository'];
  const url = typeof given === 'string' ? given : isRecord(given) ? textMember(given, 'url') : undefined;
  const subfolder = isRecord(given) ? textMember(given, 'directory') : undefined;
  return {
    source: file,
    ...optional('fullName', textMember(manifest, 'mcpName')),
    shortName: name.slice(name.lastIndexOf('/') + 1),
    ...optional('version', textMember(manifest, 'version')),
    ...optional('description', textMember(manifest, 'description')),
    ...optional('websiteUrl', httpUrl(textMember(manifest, 'homepage'))),
    ...optional('repository', repositoryAt(url, subfolder)),
    package: { registryType: 'npm', identifier: name },
  };
}

async function ofPyproject(text: string, file: string): Promise<Project> {
  const { parse } = await import('smol-toml');
  let manifest: unknown;
  try {
    manifest = parse(text);
  } catch (cause) {
    throw unreadable(file, 'it is no TOML', cause);
  }
  const project = isRecord(manifest) ? manifest['project'] : undefined;
  const name = isRecord(project) ? textMember(project, 'name') : undefined;
  if (!isRecord(project) || name === undefined) throw unreadable(file, 'it has no name below [project]');
  const urls = Object.entries(isRecord(project['urls']) ? project['urls'] : {});
  // Labels of well-known URLs are compared without case and punctuation (the packaging specifications of Python).
  const labelled = (...labels: readonly string[]): string | undefined => {
    const found = urls.find(([label]) => labels.includes(label.toLowerCase().replaceAll(/[^a-z]/gu, '')));
    return typeof found?.[1] === 'string' ? found[1] : undefined;
  };
  return {
    source: file,
    shortName: name,
    ...optional('version', textMember(project, 'version')),
    ...optional('description', textMember(project, 'description')),
    ...optional('websiteUrl', httpUrl(labelled('homepage', 'documentation'))),
    ...optional('repository', repositoryAt(labelled('source', 'repository', 'sourcecode', 'github'))),
    package: { registryType: 'pypi', identifier: name },
  };
}

function ofGoMod(text: string, file: string): Project {
  const [, quoted, plain] = /^\s*module\s+(?:"([^"]+)"|(\S+))/mu.exec(text) ?? [];
  const module = quoted ?? plain;
  if (module === undefined) throw unreadable(file, 'it names no module');
  const parts = module.replace(/\/v\d+$/u, '').split('/');
  const [host = '', owner, repository] = parts;
  const isKnownHost = ['github.com', 'gitlab.com', 'bitbucket.org', 'codeberg.org'].includes(host);
  const url = isKnownHost && repository !== undefined ? `https://${host}/${owner}/${repository}` : undefined;
  return {
    source: file,
    shortName: parts.at(-1) ?? module,
    ...optional('repository', repositoryAt(url, parts.slice(3).join('/') || undefined)),
  };
}

/** `host/path/name:tag`; a tag that is no version is part of what the image is, not of what is published. */
function ofImage(reference: string): Project {
  const found =
    /^(?<path>[\w.-]+(?::\d+)?(?:\/[\w.-]+)*)(?::(?<tag>[\w][\w.-]*))?(?:@sha256:[a-f0-9]{64})?$/u.exec(
      reference,
    );
  const { path = '', tag } = found?.groups ?? {};
  const parts = path.split('/');
  if (found === null || (parts.length === 1 && tag === undefined)) {
    throw new SkepError('publish/no-project', {
      message: `${JSON.stringify(reference)} is neither a manifest nor an image`,
    });
  }
  const [host = '', owner] = parts;
  // Images of GitHub's registry belong to an account there, as the names of servers do.
  const repository =
    host === 'ghcr.io' && parts.length > 2 ? `https://github.com/${owner}/${parts[2]}` : undefined;
  return {
    source: reference,
    shortName: parts.at(-1) ?? path,
    ...optional('version', tag !== undefined && /^v?\d/u.test(tag) ? tag.replace(/^v/u, '') : undefined),
    ...optional('repository', repositoryAt(repository)),
    package: { registryType: 'oci', identifier: reference },
  };
}

/** The address of a repository as a browser opens it, of whichever form git takes. */
function repositoryAt(text: string | undefined, subfolder?: string): Project['repository'] {
  if (text === undefined) return undefined;
  const short = /^(?:github:)?([\w.-]+\/[\w.-]+)$/u.exec(text);
  const ssh = /^(?:ssh:\/\/)?git@([\w.-]+)[:/](.+)$/u.exec(text);
  const plain = short
    ? `https://github.com/${short[1]}`
    : ssh
      ? `https://${ssh[1]}/${ssh[2]}`
      : text.replace(/^git\+/u, '').replace(/^git:/u, 'https:');
  const url = httpUrl(plain.replace(/\.git$/u, ''));
  return url === undefined ? undefined : { url, ...optional('subfolder', subfolder) };
}

/** Without a login, which nobody means to publish. */
function httpUrl(text: string | undefined): string | undefined {
  const url = text === undefined ? null : URL.parse(text);
  if (url === null || !/^https?:$/u.test(url.protocol)) return undefined;
  url.username = '';
  url.password = '';
  return url.href.replace(/\/$/u, '');
}

function textMember(value: Record<string, unknown>, name: string): string | undefined {
  const member = value[name];
  return typeof member === 'string' && member.trim() !== '' ? member.trim() : undefined;
}

function optional<Name extends string, T>(name: Name, value: T | undefined): { [N in Name]?: T } {
  return (value === undefined ? {} : { [name]: value }) as { [N in Name]?: T };
}

function unreadable(file: string, why: string, cause?: unknown): SkepError {
  return new SkepError('publish/no-project', { message: `"${file}" cannot be used: ${why}`, cause });
}
