import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { repoRoot } from '../require.ts';
import { runTool } from './run.ts';

export type ClientSuite = 'stable' | 'next';

export interface ClientScenario {
  readonly name: string;
  /** Those of MCP that it is for. */
  readonly revisions: readonly string[];
}

const TOOLS: Readonly<Record<ClientSuite, string>> = {
  stable: 'node_modules/@modelcontextprotocol/conformance/dist/index.js',
  next: 'node_modules/conformance-next/dist/index.js',
};
const NEWEST = '2026-07-28';

/** What the tool itself lists. */
export async function clientScenarios(suite: ClientSuite): Promise<readonly ClientScenario[]> {
  const { output } = await runTool(path.join(repoRoot, TOOLS[suite]), ['list', '--client']);
  return Array.from(output.matchAll(/^\s*- (\S+) \[([^\]]*)\]$/gmu), ([, name = '', list = '']) => ({
    name,
    revisions: list.split(','),
  }));
}

interface Outcome {
  /** The tool's own verdict, warnings included. */
  readonly isPassed: boolean;
  readonly passed: number;
  /** Checks that failed or warn; what the tool said, where it was none of them. */
  readonly bad: readonly string[];
}

interface Check {
  readonly id: string;
  readonly status?: string;
  readonly description?: string;
  readonly errorMessage?: string;
}

interface Client {
  /** A script of the repository. */
  readonly program: string;
  /** Wins over that of this process. */
  readonly env: Readonly<Record<string, string>>;
}

/** Runs `program URL` against the server of one scenario, under the newest revision that it is for. */
export async function runClientScenario(
  suite: ClientSuite,
  { name, revisions }: ClientScenario,
  { program, env }: Client,
): Promise<Outcome> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'skep-conformance-'));
  try {
    const isNewest = suite === 'next' && revisions.includes(NEWEST);
    const args = [
      'client',
      '--command',
      `${process.execPath} ${path.join(repoRoot, program)}`,
      '--scenario',
      name,
      '--timeout',
      '60000',
      '-o',
      folder,
      ...(isNewest ? ['--spec-version', NEWEST] : []),
    ];
    const { code, output } = await runTool(path.join(repoRoot, TOOLS[suite]), args, env);
    const file = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((one) =>
      one.endsWith('checks.json'),
    );
    if (file === undefined) return { isPassed: false, passed: 0, bad: ['no results were written'] };
    const checks: readonly Check[] = JSON.parse(readFileSync(path.join(folder, file), 'utf8'));
    const bad = checks
      .filter(({ status = '' }) => !['SUCCESS', 'INFO'].includes(status))
      .map(({ id, status, errorMessage, description }) => `${status} ${id}: ${errorMessage ?? description}`);
    return {
      isPassed: code === 0,
      passed: checks.filter(({ status }) => status === 'SUCCESS').length,
      bad: bad.length === 0 && code !== 0 ? [output.slice(-2_000)] : bad,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
