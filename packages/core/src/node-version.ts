/** The first with the built-in SQLite and certificate calls that both programs use; `engines` of the packages says the same. */
const NEEDED = 24;

/** The line for a person whose Node is too old, else undefined. `version` as `process.version` has it. */
export function nodeTooOld(program: string, version: string): string | undefined {
  const [, major = '0'] = /^v(\d+)\./.exec(version) ?? [];
  if (Number(major) >= NEEDED) return undefined;
  return `${program} needs Node ${NEEDED} or newer, and this is ${version}\n`;
}
