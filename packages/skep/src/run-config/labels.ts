// Kubernetes label rules, so that a workload can be moved there.
const PART = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
const PREFIX = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/;

/** True for labels in which Skep, or ToolHive, states a fact about a running workload: nobody else may write them. */
export function isReservedLabel(key: string): boolean {
  return key === 'toolhive' || key.startsWith('toolhive-') || key.startsWith('skep.');
}

/** True when a person or a file may give a container this label. */
export function isLabel(key: string, value: string): boolean {
  if (isReservedLabel(key) || (value !== '' && !PART.test(value))) return false;
  const slash = key.indexOf('/');
  return PART.test(key.slice(slash + 1)) && (slash === -1 || PREFIX.test(key.slice(0, slash)));
}
