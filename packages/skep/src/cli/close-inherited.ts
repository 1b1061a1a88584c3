import { closeSync } from 'node:fs';
import { inheritedDescriptors } from '../runtime/sandbox/inherited-descriptors.ts';

/**
 * Closes what whoever started this process left open: a supervisor and its watcher would hold it for weeks, a lock of the
 * shell's among it. Only after everything that the command line names was read, for it may name a descriptor.
 */
export function closeInherited(platform: NodeJS.Platform): void {
  if (platform !== 'linux') return;
  for (const descriptor of inheritedDescriptors()) closeSync(descriptor);
}
