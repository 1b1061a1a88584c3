import type { ServerResponse } from 'node:http';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { StreamedAnswer } from '@skep/core/fetch/requester.ts';
import { isMissing, notFetchedFrom } from '../gateway/ask-upstream.ts';
import { PackageGateway } from '../gateway/gateway.ts';
import { unescapedPath } from './module-path.ts';
import type { GoProxies } from './proxies.ts';

export interface GoGatewayOptions {
  readonly proxies: Pick<GoProxies, 'file' | 'checksums'>;
  /** Told how many modules have been fetched. */
  readonly onDownload: (count: number) => void;
  /** All files together; unlimited servers would fill the disk. */
  readonly maxBytes?: number;
}

const MAX_BYTES = 4 * 1024 * 1024 * 1024;

const ELEMENT = '[a-z0-9!_~-](?:[a-z0-9!._~-]*[a-z0-9!_~-])?';
const MODULE_FILE = new RegExp(
  `^(${ELEMENT}(?:/${ELEMENT})*)/(@latest|@v/(?:list|[a-z0-9!][a-z0-9!.+_~-]*\\.(?:info|mod|zip)))$`,
);
const CHECKSUMS =
  /^sumdb\/([a-z0-9.-]+)\/(supported|latest|lookup\/[\w!./~@+-]+|tile\/[0-9]+\/(?:data|[0-9]+)\/[x0-9/]+(?:\.p\/[0-9]+)?)$/;

/**
 * The one thing that a Go which is confined can reach: a module proxy that has what the person's own proxies have, and
 * their checksum database, by which Go itself verifies every module. It takes no address from inside.
 */
export function goGateway({ proxies, onDownload, maxBytes = MAX_BYTES }: GoGatewayOptions): PackageGateway {
  let left = maxBytes;
  let downloads = 0;
  const send = async (answer: StreamedAnswer | undefined, response: ServerResponse): Promise<void> => {
    if (answer === undefined || isMissing(answer)) {
      answer?.drop();
      response.writeHead(404).end();
      return;
    }
    const bounded = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        left -= chunk.length;
        if (left >= 0) done(null, chunk);
        else done(notFetchedFrom('its modules are too large together'));
      },
    });
    response.writeHead(200);
    await pipeline(answer.body, bounded, response);
  };
  return new PackageGateway(async ({ path, response, signal }) => {
    const [, database, entry = ''] = CHECKSUMS.exec(path) ?? [];
    const [, module, below = ''] = MODULE_FILE.exec(path) ?? [];
    const isPlain = !path.split('/').includes('..');
    if (database !== undefined && isPlain) {
      // Whether the person's proxy passes it on is nothing that Go has to know.
      if (entry === 'supported') response.writeHead(200).end();
      else await send(await proxies.checksums(database, entry, signal), response);
    } else if (module !== undefined && isPlain) {
      await send(await proxies.file(unescapedPath(module), below, signal), response);
      if (below.endsWith('.zip')) onDownload((downloads += 1));
    } else response.writeHead(404).end();
  });
}
