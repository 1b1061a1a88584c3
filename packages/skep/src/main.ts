import { nodeTooOld } from '@skep/core/node-version.ts';
import { interpretSchemas } from './cli/interpret-schemas.ts';
import { keepCompiled } from './cli/keep-compiled.ts';
import manifest from '../package.json' with { type: 'json' };

// Nothing else is imported before it is known to be needed: `skep version` is what scripts and prompts call, and an old
// Node fails on an import that it lacks.
const [, , ...argv] = process.argv;
const tooOld = nodeTooOld('skep', process.version);
if (tooOld !== undefined) {
  process.stderr.write(tooOld);
  process.exitCode = 1;
} else if (argv.length === 1 && (argv[0] === 'version' || argv[0] === '--version')) {
  process.stdout.write(`skep ${manifest.version}\n`);
} else {
  keepCompiled(process);
  interpretSchemas(globalThis);
  const { runCommandLine } = await import('./run-command-line.ts');
  process.exitCode = await runCommandLine(argv, manifest.version);
}
