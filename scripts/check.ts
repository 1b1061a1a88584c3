import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, existsSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';

/**
 * Runs every gate and closes with one line of counts. `--only format,types` runs some; gates go on after a failure so
 * that one run tells everything.
 */
interface Gate {
  readonly name: string;
  readonly command: readonly string[];
  /** The gate is a test run: its cases are counted instead of the gate itself. */
  readonly counted?: true;
}

const vitest = (project: string): readonly string[] => ['vitest', 'run', '--project', project];
const GATES: readonly Gate[] = [
  { name: 'format', command: ['oxfmt', '--check'] },
  { name: 'lint', command: ['oxlint', '--type-aware', '--deny-warnings'] },
  { name: 'types', command: ['tsc', '-p', 'tsconfig.json'] },
  { name: 'lock', command: ['node', 'scripts/complete-lock.ts', '--check'] },
  { name: 'layers', command: ['node', 'scripts/check-layers.ts'] },
  { name: 'unused', command: ['knip'] },
  { name: 'docs', command: ['node', 'scripts/docs.ts', '--check'] },
  { name: 'unit', command: vitest('unit'), counted: true },
  { name: 'bundle', command: ['node', 'scripts/bundle.ts'] },
  { name: 'e2e', command: vitest('e2e'), counted: true },
  { name: 'bench', command: ['node', 'bench/main.ts', '--smoke'] },
];

const { values } = parseArgs({ options: { only: { type: 'string' } } });
const chosen = values.only?.split(',');
const unknown = chosen?.filter((name) => !GATES.some((gate) => gate.name === name)) ?? [];
if (unknown.length > 0) {
  console.error(
    `Error: no gate "${unknown.join('", "')}"; there are ${GATES.map((gate) => gate.name).join(', ')}`,
  );
  process.exit(2);
}

const root = path.resolve(import.meta.dirname, '..');
const scratch = mkdtempSync(path.join(os.tmpdir(), 'skep-check-'));
const total = { passed: 0, failed: 0, skipped: 0 };
const failures: string[] = [];
const skips = new Set<string>();

for (const gate of GATES) {
  if (chosen && !chosen.includes(gate.name)) continue;
  const started = performance.now();
  console.log(`\n── ${gate.name}`);
  const report = path.join(scratch, `${gate.name}.json`);
  const extra = gate.counted ? ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`] : [];
  const code = await run([...gate.command, ...extra]);
  const counts =
    gate.counted && existsSync(report)
      ? countCases(report)
      : { passed: code === 0 ? 1 : 0, failed: 0, skipped: 0 };
  if (code !== 0) failures.push(gate.name);
  total.passed += counts.passed;
  total.failed += Math.max(counts.failed, code === 0 ? 0 : 1);
  total.skipped += counts.skipped;
  console.log(
    `── ${gate.name} ${code === 0 ? 'holds' : 'FAILS'} (${((performance.now() - started) / 1000).toFixed(1)} s)`,
  );
}
rmSync(scratch, { recursive: true, force: true });

if (skips.size > 0) console.log(`\nSkipped:\n${[...skips].map((line) => `  ${line}`).join('\n')}`);
console.log(failures.length > 0 ? `\nFailing gates: ${failures.join(', ')}\n` : '\nAll gates hold.\n');
console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
process.exit(failures.length > 0 ? 1 : 0);

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
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

function countCases(file: string): { passed: number; failed: number; skipped: number } {
  const report: JsonReport = JSON.parse(readFileSync(file, 'utf8'));
  for (const one of report.testResults.flatMap((result) => result.assertionResults)) {
    const reason = /\[skipped: ([^\]]*)\]/.exec(one.fullName)?.[1];
    if (one.status === 'skipped' || one.status === 'pending') skips.add(reason ?? one.fullName);
  }
  return { passed: report.numPassedTests, failed: report.numFailedTests, skipped: report.numPendingTests };
}
