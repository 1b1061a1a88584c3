import { realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { isRecord } from '@skep/core/json/is-record.ts';

export interface NodeFile {
  /** Where it is on this machine, links resolved. */
  readonly source: string;
  /** Where programs look for it. */
  readonly target: string;
  readonly size: number;
  /** Differs when its content does: size and times, which is read faster than 120 MB. */
  readonly version: string;
}

/** Where Node lies in an image that is made from the running one. */
export const NODE_IN_IMAGE = '/usr/local/bin/node';

/** glibc before 2.34 loads these by name, to resolve hosts; they lie beside it. */
const NAME_SERVICE = ['libnss_files.so.2', 'libnss_dns.so.2', 'libresolv.so.2'];

/**
 * The running Node with every library that it has loaded, its loader among them: all that a file system needs for it to
 * run there. Linux only.
 */
export async function nodeFiles(execPath: string): Promise<readonly NodeFile[]> {
  const { report } = process;
  // Not in its types yet; it would ask for the names of all addresses in use.
  Reflect.set(report, 'excludeNetwork', true);
  const told: unknown = report.getReport();
  const loaded: unknown = isRecord(told) ? told['sharedObjects'] : [];
  const names = Array.isArray(loaded) ? loaded.filter((one) => typeof one === 'string') : [];
  // Addons of Node are loaded in the same way.
  const libraries = names.filter((file) => path.isAbsolute(file) && !file.endsWith('.node'));
  const folders = libraries.filter((file) => /\/libc\.so\.\d/.test(file)).map((file) => path.dirname(file));
  const named = folders.flatMap((folder) => NAME_SERVICE.map((name) => path.join(folder, name)));
  const all = new Set([...libraries, ...named]);
  all.delete(execPath);
  const found = await Promise.all([
    fileAt(execPath, NODE_IN_IMAGE),
    ...[...all].toSorted().map((file) => fileAt(file, file)),
  ]);
  return found.filter((file) => file !== undefined);
}

/** Undefined for what is no file, as a library is that this machine does not have. */
async function fileAt(file: string, target: string): Promise<NodeFile | undefined> {
  try {
    const source = await realpath(file);
    const found = await stat(source);
    const { size, mtimeMs, ctimeMs } = found;
    return found.isFile() ? { source, target, size, version: `${size} ${mtimeMs} ${ctimeMs}` } : undefined;
  } catch {
    return undefined;
  }
}
