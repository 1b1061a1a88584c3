import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, existsSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { recordFile, recordRun } from './unsteady.ts';

/**
 * Runs the gates and closes with one line of counts. `npm test` is correctness: every gate but the benchmarks. `--all`
 * (`npm run check`) adds these, and keeps the record of unsteady tests. `--only format,types` runs some. Gates go on
 * after a failure so that one run tells everything.
 */
interface Gate {
  readonly name: string;
  /** Absent for a test run. */
  readonly command?: readonly string[];
  /** A project of vitest.config.ts. Its cases are counted instead of the gate itself. */
  readonly project?: string;
  /**
   * Files with a failure run once more, and what passes only then is named at the end: others load the machine, and
   * tests drive real components. A gate with more failing files than this is not unlucky but broken.
   */
  readonly secondAttempt?: { readonly filesAtMost: number };
  /** Measures instead of proving, so it waits for `--all`: figures of a busy machine tell a newcomer nothing. */
  readonly measures?: true;
}

const GATES: readonly Gate[] = [
  { name: 'format', command: ['oxfmt', '--check'] },
  { name: 'lint', command: ['oxlint', '--type-aware', '--deny-warnings'] },
  { name: 'types', command: ['tsc', '-p', 'tsconfig.json'] },
  { name: 'lock', command: ['node', 'scripts/complete-lock.ts', '--check'] },
  { name: 'layers', command: ['node', 'scripts/check-layers.ts'] },
  { name: 'unused', command: ['knip'] },
  // What only tests use is not used: the same from the two programs' entries alone.
  { name: 'unused', command: ['knip', '--production', '--config', 'knip.production.json'] },
  { name: 'docs', command: ['node', 'scripts/docs.ts', '--check'] },
  { name: 'unit', project: 'unit', secondAttempt: { filesAtMost: 2 } },
  { name: 'bundle', command: ['node', 'scripts/bundle.ts'] },
  { name: 'e2e', project: 'e2e', secondAttempt: { filesAtMost: 2 } },
  { name: 'bench', command: ['node', 'bench/main.ts', '--smoke'], measures: true },
];

const { values } = parseArgs({
  options: { only: { type: 'string' }, all: { type: 'boolean', default: false } },
});
const chosen = values.only?.split(',');
const unknown = chosen?.filter((name) => !GATES.some((gate) => gate.name === name)) ?? [];
if (unknown.length > 0) {
  console.error(
    `Error: no gate "${unknown.join('", "')}"; there are ${[...new Set(GATES.map((gate) => gate.name))].join(', ')}`,
  );
  process.exit(2);
}

const root = path.resolve(import.meta.dirname, '..');
const scratch = mkdtempSync(path.join(os.tmpdir(), 'skep-check-'));
const total = { passed: 0, failed: 0, skipped: 0 };
const failures: string[] = [];
const skips = new Set<string>();
const unsteady: string[] = [];
/** Named at the end, where whoever sees only the last lines of a long run finds them. */
const failed: string[] = [];
let attempted = false;

for (const gate of GATES) {
  if (chosen ? !chosen.includes(gate.name) : gate.measures && !values.all) continue;
  const started = performance.now();
  console.log(`\n── ${gate.name}`);
  const holds = await passes(gate);
  if (!holds) failures.push(gate.name);
  console.log(
    `── ${gate.name} ${holds ? 'holds' : 'FAILS'} (${((performance.now() - started) / 1000).toFixed(1)} s)`,
  );
}
rmSync(scratch, { recursive: true, force: true });

if (skips.size > 0) console.log(`\nSkipped:\n${listed([...skips])}`);
if (failed.length > 0) console.log(`\nFailed:\n${listed(failed)}`);
if (unsteady.length > 0) console.log(`\nPassed only at the second attempt:\n${listed(unsteady)}`);
if (values.all && attempted) {
  const file = recordFile(process.env);
  const staying = recordRun(file, { at: new Date().toISOString(), tests: unsteady });
  if (staying.length > 0) {
    console.log(`\nUnsteady more than once in ten runs (${file}):\n${listed(staying)}`);
    // A landing run proves one change, which need not be the one that made the test unsteady.
    if (process.env['CI'] !== 'true') {
      failures.push('steady');
      total.failed += staying.length;
    }
  }
}
console.log(failures.length > 0 ? `\nFailing gates: ${failures.join(', ')}\n` : '\nAll gates hold.\n');
console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
process.exit(failures.length > 0 ? 1 : 0);

function listed(lines: readonly string[]): string {
  return lines.map((line) => `  ${line}`).join('\n');
}

/** Runs one gate and adds its counts to the total. */
async function passes(gate: Gate): Promise<boolean> {
  const { command, project = '', secondAttempt } = gate;
  if (command !== undefined) {
    const holds = (await run(command)) === 0;
    total[holds ? 'passed' : 'failed'] += 1;
    return holds;
  }
  if (secondAttempt) attempted = true;
  const first = await runTests(project, []);
  total.passed += first.passed;
  total.skipped += first.skipped;
  const { failedFiles, failedCases } = first;
  const again = failedFiles.length > 0 && failedFiles.length <= (secondAttempt?.filesAtMost ?? 0);
  const last = again ? await runTests(project, failedFiles) : first;
  if (again) unsteady.push(...failedCases.filter((one) => !last.failedCases.includes(one)));
  // Those of the first attempt that passed now; a run that broke outside its cases fails as one.
  if (again) total.passed += Math.max(0, failedCases.length - last.failedCases.length);
  failed.push(...last.failedCases, ...last.brokenFiles);
  total.failed += Math.max(last.failedCases.length, last.code === 0 ? 0 : 1);
  return last.code === 0;
}

async function runTests(project: string, files: readonly string[]): Promise<TestRun> {
  const report = path.join(scratch, `${project}-${files.length}.json`);
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  const oneByOne = files.length > 0 ? ['--no-file-parallelism'] : [];
  const code = await run(['vitest', 'run', '--project', project, ...oneByOne, ...reporters, ...files]);
  if (!existsSync(report))
    return { code, passed: 0, skipped: 0, failedFiles: [], failedCases: [], brokenFiles: [] };
  return { code, ...countCases(report) };
}

function run([program = '', ...args]: readonly string[]): Promise<number> {
  // The workspace's own binaries first: that is also where its Node comes from.
  const env = {
    ...process.env,
    PATH: `${path.join(root, 'node_modules/.bin')}${path.delimiter}${process.env['PATH']}`,
  };
  return new Promise((resolve) => {
    const child = spawn(program, args, { cwd: root, env, stdio: 'inherit' });
    child.on('error', (error) => {
      console.error(`Error: cannot start ${program}: ${error.message}`);
      resolve(1);
    });
    child.on('exit', (code) => resolve(code ?? 1));
  });
}

interface JsonReport {
  readonly numPassedTests: number;
  readonly numPendingTests: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

interface Counts {
  readonly passed: number;
  readonly skipped: number;
  readonly failedFiles: readonly string[];
  readonly failedCases: readonly string[];
  /** Failed outside their cases: they could not be loaded, or what they set up broke. */
  readonly brokenFiles: readonly string[];
}

interface TestRun extends Counts {
  readonly code: number;
}

function isFailed({ status }: { readonly status: string }): boolean {
  return status === 'failed';
}

function countCases(file: string): Counts {
  const report: JsonReport = JSON.parse(readFileSync(file, 'utf8'));
  const cases = report.testResults.flatMap((result) => result.assertionResults);
  for (const one of cases) {
    const reason = /\[skipped: ([^\]]*)\]/.exec(one.fullName)?.[1];
    if (one.status === 'skipped' || one.status === 'pending') skips.add(reason ?? one.fullName);
  }
  const failedResults = report.testResults.filter(({ status }) => status === 'failed');
  return {
    passed: report.numPassedTests,
    skipped: report.numPendingTests,
    failedFiles: failedResults.map(({ name }) => name),
    failedCases: cases.filter(isFailed).map(({ fullName }) => fullName),
    brokenFiles: failedResults
      .filter(({ assertionResults }) => !assertionResults.some(isFailed))
      .map(({ name }) => path.relative(root, name)),
  };
}
