import { readdirSync, readFileSync } from 'node:fs';
import { errnoOf } from '@skep/core/files/errno.ts';

/** `O_CLOEXEC` as proc_pid_fdinfo(5) prints it, in octal. */
const CLOSE_ON_EXEC = 0o2000000;

/**
 * Descriptors that whoever started this program left open, and that every program started from here would have too:
 * everything that Node opens itself closes on exec, and of what it inherits only the first sixteen do. Linux only.
 */
export function inheritedDescriptors(): readonly number[] {
  return readdirSync('/proc/self/fd')
    .map(Number)
    .filter((descriptor) => descriptor > 2 && survivesExec(descriptor));
}

function survivesExec(descriptor: number): boolean {
  try {
    const flags = /^flags:\s+([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8'))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0;
  } catch (error) {
    // The one that the listing itself was read through.
    if (errnoOf(error) === 'ENOENT') return false;
    throw error;
  }
}

export type Stdio = number | 'ignore' | 'pipe' | 'ipc';

/**
 * The descriptors for a new program, with `devNull` put over every inherited number beyond them. libuv leaves numbers
 * that it is not told about as they are, and closing them here could hit what somebody still reads.
 */
export function coverInherited(
  wanted: readonly Stdio[],
  inherited: readonly number[],
  devNull: number,
): Stdio[] {
  const covered: Stdio[] = [...wanted];
  for (const descriptor of inherited) {
    if (descriptor < wanted.length) continue;
    while (covered.length < descriptor) covered.push('ignore');
    covered[descriptor] = devNull;
  }
  return covered;
}
