import path from 'node:path';

/** The program of a gateway's process. */
export interface GatewayFile {
  /** Absolute path. */
  readonly file: string;
  /** What it reads of itself: the file, or the workspace that it is run from without a build. */
  readonly needs: string;
}

/** Beside the program, in one file; where that runs from its sources, so does the gateway. */
export function gatewayFile(): GatewayFile {
  const here = import.meta.dirname;
  if (import.meta.filename.endsWith('.ts')) {
    return { file: path.join(here, 'main.ts'), needs: path.resolve(here, '../../../..') };
  }
  const file = path.resolve(here, '../gateway.mjs');
  return { file, needs: file };
}
