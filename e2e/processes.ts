import { readdirSync, readFileSync } from 'node:fs';

/** A process other than this one, as far as it can be read. */
interface Process {
  readonly pid: number;
  /** Its words, each with a NUL behind it; empty where it ended and nobody has asked for that yet. */
  readonly command: string;
  readonly environment: string;
}

/** All processes but this one; Linux only, as the end-to-end machines are. */
export function processes(): readonly Process[] {
  const read = (pid: number, what: string): string => {
    try {
      return readFileSync(`/proc/${pid}/${what}`, 'latin1');
    } catch {
      // It ended while we looked, or belongs to somebody else.
      return '';
    }
  };
  const pids = readdirSync('/proc').filter((name) => /^\d+$/u.test(name));
  return pids
    .map(Number)
    .filter((pid) => pid !== process.pid)
    .map((pid) => ({ pid, command: read(pid, 'cmdline'), environment: read(pid, 'environ') }));
}

/** Command lines and environments of all processes but this one. */
export function allProcesses(): string {
  return processes()
    .map(({ command, environment }) => command + environment)
    .join('\n');
}
