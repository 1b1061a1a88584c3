import { nodeTooOld } from '@skep/core/node-version.ts';
import { interpretSchemas } from './cli/interpret-schemas.ts';
import { openChunks, type Chunks } from './cli/load-chunks.ts';
import type { runCommandLine } from './run-command-line.ts';
import manifest from '../package.json' with { type: 'json' };

/** The first chunk of the packed program, beside this file; not there where it runs from its sources. */
declare const SKEP_PROGRAM: string | undefined;

interface Program extends Partial<Pick<Chunks, 'keep'>> {
  readonly runCommandLine: typeof runCommandLine;
}

// Nothing else is imported before it is known to be needed: `skep version` is what scripts and prompts call, and an old
// Node fails on an import that it lacks.
const [, , ...argv] = process.argv;
const tooOld = nodeTooOld('skep', process.version);
if (tooOld !== undefined) {
  process.stderr.write(tooOld);
  process.exitCode = 1;
} else if (argv.length === 1 && (argv[0] === 'version' || argv[0] === '--version')) {
  // What tells why it cannot be written is loaded only then.
  process.stdout.once('error', () => void run(argv)).write(`skep ${manifest.version}\n`);
} else {
  // Node's own word for a program that ends while it still waits for something.
  process.exitCode = 13;
  void run(argv);
}

async function run(argv: readonly string[]): Promise<void> {
  interpretSchemas(globalThis);
  const { keep, ...program } = await openProgram(argv[0]);
  const status = await program.runCommandLine(argv, manifest.version, keep);
  process.exitCode = status;
  // What a run that failed has called says little of the next.
  if (status === 0) keep?.();
  // Nothing is under way any more: Node would only take down, object by object, what goes with the process anyway.
  process.once('beforeExit', () => process.exit());
}

async function openProgram(command: string | undefined): Promise<Program> {
  if (typeof SKEP_PROGRAM !== 'string') return import('./run-command-line.ts');
  const first = `${import.meta.dirname}/${SKEP_PROGRAM}`;
  const { load, keep } = openChunks(process, first, command);
  return { ...(load(first) as Program), keep };
}
