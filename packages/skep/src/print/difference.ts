import type { Host } from '@skep/core/command/host.ts';
import { paint } from '@skep/core/terminal/paint.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { differenceOf } from '../clients/difference.ts';
import type { Update } from '../clients/update-client.ts';

const MAX_LINES = 60;
const MAX_WIDTH = 200;

/** Shows on stderr what an update changes in a client's file. */
export function printDifference({ file, text }: Update, host: Pick<Host, 'terminal' | 'home'>): void {
  const { terminal } = host;
  const lines = differenceOf(file.text ?? '', text ?? '');
  const path = printable(shortPath(file.path, host));
  const what = file.text === undefined ? ' (new)' : text === undefined ? ' (goes)' : '';
  const width = Math.min(MAX_WIDTH, terminal.liveErr ? terminal.width : MAX_WIDTH);
  const shown = lines.slice(0, MAX_LINES).map(({ mark, text: line }) => {
    const indent = /^[ \t]*/.exec(line)?.[0].replaceAll('\t', '  ') ?? '';
    const whole = `${mark} ${indent}${printable(line.trim().slice(0, MAX_WIDTH))}`;
    const fitting = whole.length > width ? `${whole.slice(0, width - 1)}…` : whole;
    const format = mark === '+' ? 'green' : mark === '-' ? 'red' : 'dim';
    return paint(format, fitting, terminal.colorErr);
  });
  const more = lines.length > MAX_LINES ? [`… ${lines.length - MAX_LINES} more lines`] : [];
  terminal.err(`${[`${path}${what}`, ...shown, ...more].join('\n')}\n`);
}

/** A path as people write it. */
export function shortPath(path: string, { home }: Pick<Host, 'home'>): string {
  return path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
}
