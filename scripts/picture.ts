import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { toSvg } from './demo/to-svg.ts';

/**
 * `npm run picture`: runs the demo in a terminal of its own (tmux), in the sandbox, and writes what stands on the screen
 * at its end to docs/demo.svg, the picture of the README.
 */
const COLUMNS = 96;
/** More than the demo prints, so that nothing scrolls away. */
const ROWS = 80;
const LONGEST_MS = 300_000;

const root = path.resolve(import.meta.dirname, '..');
/** A server of tmux of its own: the user's sessions and settings have no part in this. */
const server = ['-L', `skep-picture-${process.pid}`, '-f', '/dev/null'];

process.exitCode = await picture();

async function picture(): Promise<number> {
  const command = [process.execPath, '--', path.join(root, 'scripts/demo/main.ts')].map(quoted).join(' ');
  const size = ['-x', String(COLUMNS), '-y', String(ROWS)];
  const env = ['-e', 'SKEP_RUNTIME=sandbox', '-e', `PATH=${process.env['PATH'] ?? ''}`];
  try {
    // The pane stays when the demo has ended, so that it can be read.
    tmux('new-session', '-d', ...size, ...env, `${command}; echo "status $?"; exec sleep 3600`);
    const screen = await untilEnded();
    const [shown, status] = screen.split(/\n\s*status (\d+)/);
    if (status !== '0') {
      console.error(`Error: the demo failed:\n${tmux('capture-pane', '-p').trim()}`);
      return 1;
    }
    const title = 'skep-registry serves a catalogue, skep runs a server from it, a client calls its tools';
    const file = path.join(root, 'docs/demo.svg');
    writeFileSync(file, toSvg(shown ?? '', { columns: COLUMNS, title }));
    console.log(`wrote ${path.relative(root, file)}`);
    return 0;
  } finally {
    spawnSync('tmux', [...server, 'kill-server']);
  }
}

async function untilEnded(): Promise<string> {
  const deadline = Date.now() + LONGEST_MS;
  for (;;) {
    const screen = tmux('capture-pane', '-e', '-p');
    if (/^status \d+/m.test(screen)) return screen;
    if (Date.now() > deadline) throw new Error('the demo did not end within five minutes');
    await pause(200);
  }
}

function tmux(...args: readonly string[]): string {
  const { status, error, stdout, stderr } = spawnSync('tmux', [...server, ...args], { encoding: 'utf8' });
  if (status === 0) return stdout;
  throw new Error(`tmux ${args[0] ?? ''} failed: ${error?.message ?? stderr.trim()}`);
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
