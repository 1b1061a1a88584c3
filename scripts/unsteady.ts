import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';

/** Runs that a test is watched for after it needed a second attempt. */
const WATCHED_RUNS = 10;

/** One run of the tests, and the tests in it that passed only at the second attempt. */
export interface TestRunRecord {
  readonly at: string;
  readonly tests: readonly string[];
}

/**
 * Tests that stay unsteady: named in more than one of the last ten runs, oldest run first. A test that needed its second
 * attempt once had bad luck; one that needs it again is a defect that nobody mended (decision 0091).
 */
export function stayingUnsteady(runs: readonly TestRunRecord[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const { tests } of runs.slice(-WATCHED_RUNS)) {
    for (const name of new Set(tests)) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].filter(([, count]) => count > 1).map(([name]) => name);
}

/** Reads a record, one run a line. A line that was cut off, by a full disk or a killed run, is left out. */
export function readRecord(text: string): readonly TestRunRecord[] {
  return text.split('\n').flatMap((line) => {
    try {
      const value: unknown = JSON.parse(line);
      return isRecord(value) ? [value] : [];
    } catch {
      return [];
    }
  });
}

/** Where the record lies: in the state directory of the user, because a checkout comes and goes. */
export function recordFile(env: Readonly<Record<string, string | undefined>>): string {
  const state = env['XDG_STATE_HOME'];
  const base =
    state !== undefined && path.isAbsolute(state) ? state : path.join(homedir(), '.local', 'state');
  return path.join(base, 'skep-check', 'unsteady-tests.jsonl');
}

/** Adds this run to the record and returns the tests that stay unsteady. */
export function recordRun(file: string, run: TestRunRecord): readonly string[] {
  const before = existsSync(file) ? readRecord(readFileSync(file, 'utf8')) : [];
  mkdirSync(path.dirname(file), { recursive: true });
  appendFileSync(file, `${JSON.stringify(run)}\n`);
  return stayingUnsteady([...before, run]);
}

function isRecord(value: unknown): value is TestRunRecord {
  return (
    typeof value === 'object' &&
    value !== null &&
    'tests' in value &&
    Array.isArray(value.tests) &&
    value.tests.every((name) => typeof name === 'string')
  );
}
