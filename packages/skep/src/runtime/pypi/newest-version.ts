import type { PackageSource } from '../../protocol/reference.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import { PythonIndexes } from './indexes.ts';
import { findPython } from './python.ts';

/** The exact version that a Python package means today for this machine's Python, as the person's indexes say. */
export async function newestPythonVersion(
  environment: RuntimeEnvironment,
  source: PackageSource,
  signal: AbortSignal,
): Promise<string> {
  const python = await findPython(environment);
  using indexes = await PythonIndexes.open(environment, python, undefined);
  return (await indexes.resolve(source, python, signal)).version;
}
