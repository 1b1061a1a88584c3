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
import {
  conditionsAfter,
  isUnchanged,
  withClient,
  type Conditions,
  type OpenClient,
} from '../open-client.ts';
import { sourceContent, type Source } from '../source.ts';
import { splitCredentials } from '../url-secrets.ts';

const TIMEOUT_MS = 30_000;
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
  problems: function* (block, path, origin): Generator<Problem> {
    const given = PLACES.filter((key) => key in block).map((key) => `file.${key}`);
    const choices = origin === 'file' ? 'file.path or file.url' : 'file.path, file.url or file.data';
    if (given.length === 0) yield { path, message: `${choices} is required` };
    if (given.length > 1) yield { path, message: `${given.join(' and ')} are mutually exclusive` };
    if (origin === 'file' && 'data' in block) {
      const message =
        'file.data is for sources made through the API; write the data into a file and name its path';
      yield { path: [...path, 'data'], message };
    }
    if (origin === 'api' && block.path !== undefined && !isAbsolute(block.path)) {
      yield { path: [...path, 'path'], message: 'must be an absolute path' };
    }
    if ('timeout' in block && !('url' in block)) {
      yield { path: [...path, 'timeout'], message: 'is only for file.url' };
    }
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
    if (url !== undefined) return fileUrlSource({ url, maxBytes, timeoutMs: timeout }, client);
    if (data !== undefined) {
      const content = sourceContent(Buffer.from(data));
      return { label: `data of source ${name}`, fetch: () => Promise.resolve(content) };
    }
    if (path === undefined) {
      throw new SkepError('config/invalid', { message: `source "${name}" has no place` });
    }
    return {
      label: path,
      // Read whole each time: its time stamp alone does not tell whether it changed.
      fetch: async (signal) => {
        if (folders !== undefined) await assertAllowed(path, folders);
        const bytes = await readBytes(path, { maxBytes, what: 'catalogue' });
        signal.throwIfAborted();
        return sourceContent(bytes);
      },
    };
  },
});

/** A `file` source with a URL. User information in the URL is sent as basic authentication. */
interface FileUrlSourceOptions {
  readonly url: string;
  /** Milliseconds for one try; default 30 s. */
  readonly timeoutMs?: number;
  /** Of the document; default 100 MiB. */
  readonly maxBytes?: number;
}

/**
 * One document at a URL. Unchanged is told by the server (304) or by the hash of what it sent. Making the source fails
 * with `fetch/invalid-url`, fetching with `fetch/*`.
 */
export function fileUrlSource(options: FileUrlSourceOptions, open: OpenClient): Source {
  const { timeoutMs = TIMEOUT_MS, maxBytes = MAX_CATALOGUE_BYTES } = options;
  const { url, headers } = splitCredentials(options.url);
  const label = `${url.origin}${url.pathname}`;
  let last: { readonly hash: string; readonly conditions: Conditions } | undefined;
  return {
    label,
    fetch: async (signal, known) => {
      const conditions = last !== undefined && last.hash === known ? last.conditions : {};
      const answer = await withClient(open, { timeoutMs, maxBytes }, (client) =>
        client.get(url.href, { headers: { ...headers, ...conditions }, signal }),
      );
      if (isUnchanged(answer, conditions)) return undefined;
      const { status, body } = answer;
      if (status !== 200) {
        const message = `"${label}" answered with status ${status} instead of a document`;
        throw new SkepError('fetch/bad-status', { message, detail: { status } });
      }
      const content = sourceContent(body);
      last = { hash: content.hash, conditions: conditionsAfter(answer) };
      return content.hash === known ? undefined : content;
    },
  };
}
