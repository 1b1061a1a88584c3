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

const CLI = path.join(repoRoot, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
const ENOUGH_MS = 120_000;

/** Runs the active server suite of the official conformance tool against `url`: scenario name → checks. */
export async function runConformance(url: string): Promise<ReadonlyMap<string, Score>> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'skep-conformance-'));
  try {
    const output = await run(['server', '--url', url, '--suite', 'active', '-o', folder]);
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

/** Its exit status only says whether all passed; the caller compares scores, so it is not looked at. */
const run = (args: readonly string[]): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [CLI, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: ENOUGH_MS,
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
    }
    child.once('error', reject);
    child.once('close', () => resolve(output));
  });
