import { ChildProcess } from 'node:child_process';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { afterAll, expect } from 'vitest';

/**
 * Runs around every unit test file: fails the file when it leaves behind a socket, server, timer or child process that
 * would keep the process alive. What a test starts, it stops.
 */

/** What sockets and servers of this process need at most to hear of each other's end; the machine's load is no matter. */
const TURNS = 100;

/** What ends by itself: file and name look-ups, writes, and Node's own. */
const ENDS_BY_ITSELF =
  /^(?:FSReq|FSEvent|GetAddrInfo|GetNameInfo|.*ReqWrap$|Immediate|CloseReq|Work|CryptoJob|HASHREQUEST)/u;

/** Timers run in the order in which they are due, so after one of this length those of the test runner itself have run. */
const RUNNERS_TIMERS_MS = 500;

// Made when somebody first asks for them.
void [process.stdin, process.stdout, process.stderr];
const before = counts();

afterAll(async () => {
  let left = leftBehind();
  for (let turn = 0; left.length > 0 && (turn < TURNS || mayEnd()); turn += 1) {
    await setImmediate();
    left = leftBehind();
  }
  if (left.length > 0) {
    await setTimeout(RUNNERS_TIMERS_MS);
    left = leftBehind();
  }
  expect(left, 'this file leaves something behind that keeps the process alive').toEqual([]);
});

/** Kinds of resources to how many there are. */
function counts(): ReadonlyMap<string, number> {
  const kinds = process.getActiveResourcesInfo().filter((kind) => !ENDS_BY_ITSELF.test(kind));
  return new Map([...Map.groupBy(kinds, (kind) => kind)].map(([kind, all]) => [kind, all.length]));
}

function leftBehind(): string[] {
  return [...counts()].flatMap(([kind, count]) => {
    const more = count - (before.get(kind) ?? 0);
    return more > 0 ? [`${more} × ${kind}`] : [];
  });
}

/** Something is under way that other processes or the disk have to finish: a killed child, a file operation. */
function mayEnd(): boolean {
  return (
    process.getActiveResourcesInfo().some((kind) => kind !== 'Immediate' && ENDS_BY_ITSELF.test(kind)) ||
    activeHandles().some((handle) => handle instanceof ChildProcess && handle.killed)
  );
}

function activeHandles(): readonly unknown[] {
  const list: unknown = Reflect.get(process, '_getActiveHandles');
  const handles: unknown = typeof list === 'function' ? Reflect.apply(list, process, []) : [];
  return Array.isArray(handles) ? handles : [];
}
