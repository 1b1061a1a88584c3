import { memberAt, type Request } from './json-rpc.ts';
import { LEGACY_VERSIONS } from './protocol-version.ts';

const WANTED_VERSION = ['params', 'protocolVersion'];

/** The revision that an `initialize` asks for. */
export function wantedBy(request: Request): string | undefined {
  const wanted = memberAt(request.value, WANTED_VERSION);
  return typeof wanted === 'string' && LEGACY_VERSIONS.includes(wanted) ? wanted : undefined;
}
