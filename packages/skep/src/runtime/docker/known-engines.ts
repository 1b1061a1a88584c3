import { stat } from 'node:fs/promises';
import type { RuntimeInfo } from '../runtime.ts';
import type { Endpoint } from './endpoint.ts';

/**
 * Who the engines are that this process has asked: an engine takes a while to describe itself, because it runs other
 * programs for that. One that takes another's place makes its socket anew, so what is known of a socket holds as long as it
 * is the same file. Nothing is remembered of engines that listen on TCP.
 */
export class KnownEngines {
  readonly #known = new Map<string, { readonly file: string; readonly info: RuntimeInfo }>();

  /** What the engine there said earlier, or what `ask` answers with; fails as that does. */
  async identify(endpoint: Endpoint, ask: () => Promise<RuntimeInfo>): Promise<RuntimeInfo> {
    if (endpoint.kind !== 'unix') return ask();
    const file = await fileAt(endpoint.path);
    const known = this.#known.get(endpoint.path);
    if (known !== undefined && known.file === file) return known.info;
    const info = await ask();
    if (file !== undefined) this.#known.set(endpoint.path, { file, info });
    return info;
  }
}

/** Undefined when it cannot be told. */
async function fileAt(path: string): Promise<string | undefined> {
  try {
    const { dev, ino, ctimeNs } = await stat(path, { bigint: true });
    return `${dev} ${ino} ${ctimeNs}`;
  } catch {
    return undefined;
  }
}
