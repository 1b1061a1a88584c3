import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { repoRoot } from '../require.ts';

export interface Score {
  readonly passed: number;
  readonly failed: number;
}

interface Check {
  readonly status?: string;
}

/** The stable tool asks what servers with sessions do; the newest knows what the modern revision requires. */
const SUITES = {
  active: {
    cli: 'node_modules/@modelcontextprotocol/conformance/dist/index.js',
    args: ['--suite', 'active'],
  },
  '2026-07-28': {
    cli: 'node_modules/conformance-next/dist/index.js',
    args: ['--requirements', '2026-07-28'],
  },
} as const;
const ENOUGH_MS = 120_000;

/** Runs a server suite of the official conformance tool against `url`: scenario name → checks. */
export async function runConformance(
  url: string,
  suite: keyof typeof SUITES = 'active',
): Promise<ReadonlyMap<string, Score>> {
  const { cli, args } = SUITES[suite];
  const folder = mkdtempSync(path.join(os.tmpdir(), 'skep-conformance-'));
  try {
    const { output } = await runTool(path.join(repoRoot, cli), [
      'server',
      '--url',
      url,
      ...args,
      '-o',
      folder,
    ]);
    const scores = new Map(
      readdirSync(folder)
        .sort()
        .map((name): [string, Score] => [scenarioOf(name), scoreOf(path.join(folder, name, 'checks.json'))]),
    );
    if (scores.size === 0) throw new Error(`the conformance tool wrote no results:\n${output.slice(-2_000)}`);
    return scores;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The tool names a result folder `server-<scenario>-<timestamp>`. */
const scenarioOf = (folder: string): string =>
  folder.replace(/^server-/u, '').replace(/-\d{4}-\d\d-\d\dT.*$/u, '');

const scoreOf = (file: string): Score => {
  const checks: readonly Check[] = JSON.parse(readFileSync(file, 'utf8'));
  const count = (status: string): number => checks.filter((check) => check.status === status).length;
  return { passed: count('SUCCESS'), failed: count('FAILURE') };
};

/** Runs the tool. Its exit status says whether all passed; whoever compares scores does not look at it. */
export const runTool = (
  cli: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly output: string; readonly code: number | null }> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [cli, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
      timeout: ENOUGH_MS,
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
    }
    child.once('error', reject);
    child.once('close', (code) => resolve({ output, code }));
  });
