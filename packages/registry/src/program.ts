import { SkepError } from '@skep/core/errors/skep-error.ts';
import { toTerminal } from '@skep/core/errors/to-terminal.ts';
import { suggestion } from '@skep/core/settings/did-you-mean.ts';
import { fromArgv } from '@skep/core/settings/from-argv.ts';
import { fromEnv } from '@skep/core/settings/from-env.ts';
import { mergeSettings } from '@skep/core/settings/merge.ts';
import { COMMANDS } from './commands.ts';
import { withAliases } from './config/environment.ts';
import type { Host, Output } from './host.ts';

/** Runs one command line (without program name) and returns the exit status; every failure has been reported. */
export async function runProgram(argv: readonly string[], host: Host): Promise<number> {
  try {
    return await dispatch(argv, host);
  } catch (error) {
    const { text, exitCode } = toTerminal(error, {
      color: usesColor(host, host.stderr),
      debug: argv.includes('--debug'),
    });
    host.stderr.write(text);
    return exitCode;
  }
}

async function dispatch(argv: readonly string[], host: Host): Promise<number> {
  // `--debug` belongs to every command and may also stand before its name.
  const [first, ...rest] = argv[0] === '--debug' ? [...argv.slice(1), '--debug'] : argv;
  if (
    first === undefined ||
    first === '--debug' ||
    first === '--help' ||
    first === '-h' ||
    first === 'help'
  ) {
    const topic = first === 'help' ? rest[0] : undefined;
    if (topic !== undefined) return dispatch([topic, '--help'], host);
    host.stdout.write(overview());
    return 0;
  }
  const name = first === '--version' ? 'version' : first;
  const row = COMMANDS.find((candidate) => candidate.name === name);
  if (row === undefined) throw unknownCommand(name);
  return runCommand(row, rest, host);
}

async function runCommand(
  row: (typeof COMMANDS)[number],
  argv: readonly string[],
  host: Host,
): Promise<number> {
  const command = await row.load();
  const { rows, positionals = [] } = command;
  const given = fromArgv({ rows, positionals }, argv);
  if (given.help) {
    const { toHelp } = await import('@skep/core/settings/to-help.ts');
    const style = { width: Math.min(host.stdout.columns ?? 100, 120), color: usesColor(host, host.stdout) };
    host.stdout.write(toHelp({ ...command, usage: `skep-registry ${command.usage}` }, style));
    return 0;
  }
  for (const warning of given.warnings) host.stderr.write(`Warning: ${warning}\n`);
  const settings = mergeSettings(rows, [given.settings, fromEnv(rows, withAliases(host.env))]);
  return command.run(host, settings, given.positionals);
}

function overview(): string {
  const width = Math.max(...COMMANDS.map(({ name }) => name.length));
  const lines = COMMANDS.map(({ name, brief }) => `  ${name.padEnd(width)}  ${brief}`);
  return `skep-registry serves governed catalogues of MCP servers

Usage: skep-registry COMMAND [flags]

Commands:
${lines.join('\n')}

Try it without a configuration of your own: write one that serves a catalogue file to everybody,
check it, serve it.
  skep-registry validate --config registry.yaml
  skep-registry serve --config registry.yaml

Help for a command: skep-registry COMMAND --help
`;
}

function unknownCommand(given: string): SkepError {
  const isFlag = given.startsWith('-');
  const names = COMMANDS.map(({ name }) => name);
  return new SkepError(isFlag ? 'usage/unknown-flag' : 'usage/unknown-command', {
    message: `unknown ${isFlag ? 'flag' : 'command'} "${given}"`,
    hint: suggestion(given, names, `the commands are ${names.join(', ')}`),
  });
}

/** Colour for terminals that do not refuse it (no-color.org). */
function usesColor({ env }: Host, output: Output): boolean {
  return output.isTTY && (env['NO_COLOR'] ?? '') === '';
}
