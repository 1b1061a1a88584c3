import { hash } from 'node:crypto';
import { isAbsolute } from 'node:path';
import { MAX_CATALOGUE_BYTES } from '@skep/core/catalog/catalogue-text.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readBytes } from '@skep/core/files/read-limited.ts';
import { formatDuration } from '@skep/core/time/duration.ts';
import { z } from 'zod';
import type { Problem } from '../../shape/problem.ts';
import { duration, httpUrl, nonEmpty } from '../../shape/texts.ts';
import { assertAllowed } from '../allowed-path.ts';
import { sourceKind } from '../kind.ts';
import type { Source } from '../source.ts';
import { fileUrlSource, TIMEOUT_MS } from './url-source.ts';

const PLACES = ['path', 'url', 'data'] as const;

export const fileKind = sourceKind({
  shape: z.strictObject({
    path: nonEmpty.optional().describe('from the folder of the configuration; either it or url'),
    url: httpUrl.optional().describe('http or https; either it or path'),
    data: nonEmpty.optional().describe('a catalogue itself; through the API only'),
    timeout: duration().prefault(formatDuration(TIMEOUT_MS)).describe('of one request to url'),
  }),
  brief: 'a file on this machine or at an address',
  relativePaths: ['path'],
  exactlyOne: PLACES,
  isReadOnce: (block) => 'data' in block,
  problems: (block, path, origin) => {
    const given = PLACES.filter((key) => key in block).map((key) => `file.${key}`);
    const choices = origin === 'file' ? 'file.path or file.url' : 'file.path, file.url or file.data';
    const problems: Problem[] = [];
    if (given.length === 0) problems.push({ path, message: `${choices} is required` });
    if (given.length > 1) problems.push({ path, message: `${given.join(' and ')} are mutually exclusive` });
    if (origin === 'file' && 'data' in block) {
      const message =
        'file.data is for sources made through the API; write the data into a file and name its path';
      problems.push({ path: [...path, 'data'], message });
    }
    if (origin === 'api' && block.path !== undefined && !isAbsolute(block.path)) {
      problems.push({ path: [...path, 'path'], message: 'must be an absolute path' });
    }
    if ('timeout' in block && !('url' in block)) {
      problems.push({ path: [...path, 'timeout'], message: 'is only for file.url' });
    }
    return problems;
  },
  facts: (settings) => {
    const { path, url, data } = settings;
    const form = PLACES.find((key) => settings[key] !== undefined);
    return {
      isLocal: url === undefined,
      ...(form === undefined ? {} : { form }),
      ...(path === undefined ? {} : { files: [path] }),
      ...(data === undefined ? {} : { data }),
    };
  },
  open: ({ path, url, data, timeout }, { name, limits, folders, client }) => {
    const maxBytes = limits.maxCatalogueSize;
    if (url !== undefined) return fileUrlSource({ name, url, maxBytes, timeoutMs: timeout }, client);
    if (data !== undefined) return inlineSource(name, data);
    if (path === undefined) {
      throw new SkepError('config/invalid', { message: `source "${name}" has no place` });
    }
    return fileSource({ name, path, maxBytes, ...(folders === undefined ? {} : { within: folders }) });
  },
});

/** A catalogue that stands in the source itself, which only the admin API takes. */
function inlineSource(name: string, data: string): Source {
  const bytes = Buffer.from(data);
  return {
    name,
    label: `data of source ${name}`,
    fetch: async () => Promise.resolve({ bytes, hash: hash('sha256', bytes) }),
  };
}

interface FileSourceOptions {
  readonly name: string;
  /** Absolute. */
  readonly path: string;
  /** Folders in which the file must lie, checked before every fetch; absent means anywhere. */
  readonly within?: readonly string[];
  /** Default 100 MiB. */
  readonly maxBytes?: number;
}

/** A catalogue file on this machine, read whole each time: its time stamp alone does not tell whether it changed. */
function fileSource(options: FileSourceOptions): Source {
  const { name, path, within, maxBytes = MAX_CATALOGUE_BYTES } = options;
  return {
    name,
    label: path,
    fetch: async (signal) => {
      if (within !== undefined) await assertAllowed(path, within);
      const bytes = await readBytes(path, { maxBytes, what: 'catalogue' });
      signal.throwIfAborted();
      return { bytes, hash: hash('sha256', bytes) };
    },
  };
}
