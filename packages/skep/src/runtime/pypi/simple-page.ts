import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { z } from 'zod';
import { normalName } from '../../protocol/pypi-name.ts';
import { isPythonVersion } from './version.ts';

/** One file of a project, as an index names it. */
export interface IndexFile {
  readonly filename: string;
  /** Of the project, read from the name of the file. */
  readonly version: string;
  readonly url: URL;
  /** Algorithm and hexadecimal digest; absent where the index gives none. */
  readonly hash?: readonly [algorithm: string, digest: string];
  /** Digest of the metadata that lies beside a wheel (PEP 658); absent where there is none. */
  readonly metadata?: readonly [algorithm: string, digest: string];
  readonly requiresPython?: string;
  /** Taken back by who published it (PEP 592), with the reason. */
  readonly yanked?: string;
}

/** What is asked for: JSON (PEP 691) where an index has it, HTML (PEP 503) from all others. */
export const SIMPLE_FORMS =
  'application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1';

const hashesShape = z.record(z.string(), z.string());
const fileShape = z.looseObject({
  filename: z.string(),
  url: z.string(),
  hashes: hashesShape.default({}),
  'requires-python': z.string().nullish(),
  yanked: z.union([z.boolean(), z.string()]).default(false),
  'core-metadata': z.union([z.boolean(), hashesShape]).optional(),
  'dist-info-metadata': z.union([z.boolean(), hashesShape]).optional(),
});
const pageShape = z.looseObject({ files: z.array(z.unknown()) });

/** The files of a project that can be installed; undefined for an answer that is no page of an index. */
export function readSimplePage(
  text: string,
  { type, base, project }: { readonly type: string; readonly base: URL; readonly project: string },
): readonly IndexFile[] | undefined {
  const found = /\bjson\b/.test(type) ? filesOfJson(text) : filesOfHtml(text);
  return found?.flatMap((file) => indexFile(file, base, project));
}

type Described = z.infer<typeof fileShape>;

function filesOfJson(text: string): readonly Described[] | undefined {
  const page = pageShape.safeParse(parsedJson(text)).data;
  // A file that is described in another way is none that could be asked for.
  return page?.files.flatMap((file) => fileShape.safeParse(file).data ?? []);
}

function filesOfHtml(text: string): readonly Described[] | undefined {
  if (!/<(?:!doctype|html|body|a)\b/i.test(text)) return undefined;
  const anchors = [...text.matchAll(/<a\s([^>]*)>([^<]*)<\/a>/gi)];
  return anchors.flatMap(([, attributes = '', content = '']) => {
    const url = attribute(attributes, 'href');
    if (url === undefined) return [];
    const metadata = attribute(attributes, 'data-core-metadata') ?? attribute(attributes, 'data-dist-info-metadata'); // prettier-ignore
    const yanked = attribute(attributes, 'data-yanked');
    return {
      filename: plain(content).trim(),
      url,
      hashes: hashOf(/#(\w+=[0-9a-fA-F]+)$/.exec(url)?.[1]),
      'requires-python': attribute(attributes, 'data-requires-python'),
      yanked: yanked ?? false,
      'core-metadata': metadata === undefined ? false : hashOf(metadata),
    };
  });
}

function attribute(attributes: string, name: string): string | undefined {
  const [, double, single] = new RegExp(`(?:^|\\s)${name}=(?:"([^"]*)"|'([^']*)')`, 'i').exec(attributes) ?? []; // prettier-ignore
  const value = double ?? single;
  return value === undefined ? undefined : plain(value);
}

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', '#39': "'", '#x27': "'" }; // prettier-ignore

const plain = (text: string): string =>
  text.replaceAll(/&(#?\w+);/g, (all, name: string) => ENTITIES[name.toLowerCase()] ?? all);

function hashOf(text = ''): Record<string, string> {
  const [, algorithm, digest] = /^(\w+)=([0-9a-fA-F]+)$/.exec(text) ?? [];
  return algorithm === undefined || digest === undefined ? {} : { [algorithm]: digest };
}

function indexFile(file: Described, base: URL, project: string): IndexFile | [] {
  const url = URL.parse(file.url, base.href);
  const version = versionOf(file.filename, project);
  if (url === null || !/^https?:$/.test(url.protocol) || version === undefined) return [];
  url.hash = '';
  const hash = strongest(file.hashes);
  const described = file['core-metadata'] ?? file['dist-info-metadata'];
  const metadata = typeof described === 'object' ? strongest(described) : undefined;
  const { filename, yanked, 'requires-python': requiresPython } = file;
  return {
    filename,
    version,
    url,
    ...(hash && { hash }),
    ...(metadata && filename.endsWith('.whl') && { metadata }),
    ...(typeof requiresPython === 'string' && { requiresPython }),
    ...(yanked !== false && { yanked: yanked === true ? '' : yanked }),
  };
}

const ALGORITHMS = ['sha512', 'sha384', 'sha256', 'md5'];

function strongest(hashes: Readonly<Record<string, string>>): readonly [string, string] | undefined {
  const algorithm = ALGORITHMS.find((one) => Object.hasOwn(hashes, one));
  const digest = algorithm === undefined ? undefined : hashes[algorithm]?.toLowerCase();
  return algorithm === undefined || digest === undefined || !/^[0-9a-f]+$/.test(digest)
    ? undefined
    : [algorithm, digest];
}

/** Undefined for what is no file of the project that pip could install, or could be no plain name of a file. */
function versionOf(filename: string, project: string): string | undefined {
  if (!/^[A-Za-z0-9][A-Za-z0-9._+!-]*$/.test(filename)) return undefined;
  const wheel = /^([^-]+)-([^-]+)(?:-\d[^-]*)?-[^-]+-[^-]+-[^-]+\.whl$/.exec(filename);
  const source = /^(.+)-([^-]+)\.(?:tar\.gz|zip)$/.exec(filename);
  const [, name = '', version = ''] = wheel ?? source ?? [];
  return normalName(name) === project && isPythonVersion(version) ? version : undefined;
}
