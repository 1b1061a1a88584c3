import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { readRecord, recordFile, recordRun, stayingUnsteady, type TestRunRecord } from './unsteady.ts';

const run = (...tests: string[]): TestRunRecord => ({ at: '2026-01-01T00:00:00Z', tests });

describe('a test stays unsteady', () => {
  test('when it needed a second attempt twice in ten runs', () => {
    const steady = Array.from({ length: 8 }, () => run());
    expect(stayingUnsteady([run('a'), ...steady, run('a', 'b')])).toEqual(['a']);
  });

  test('but not when ten runs lie between, or when one run names it twice', () => {
    const steady = Array.from({ length: 9 }, () => run());
    expect(stayingUnsteady([run('a'), ...steady, run('a', 'a')])).toEqual([]);
  });
});

describe('the record', () => {
  test('keeps one line a run and answers from all of them', () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'skep-record-'));
    try {
      const file = recordFile({ XDG_STATE_HOME: folder });
      expect(recordRun(file, run('a'))).toEqual([]);
      expect(recordRun(file, run())).toEqual([]);
      expect(recordRun(file, run('a'))).toEqual(['a']);
      expect(readRecord(readFileSync(file, 'utf8'))).toEqual([run('a'), run(), run('a')]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('survives a line that was cut off', () => {
    expect(readRecord(`${JSON.stringify(run('a'))}\n{"at":"2026","tes\n[]\n{"tests":[1]}\n`)).toEqual([
      run('a'),
    ]);
  });

  test('lies in the home directory where the variable names no absolute path', () => {
    expect(recordFile({ XDG_STATE_HOME: 'relative' })).toBe(recordFile({}));
    expect(path.isAbsolute(recordFile({}))).toBe(true);
  });
});
