import type { Report } from '../runtime/runtime.ts';
import type { Terminal } from '@skep/core/command/terminal.ts';
import { paint } from '@skep/core/terminal/paint.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { shorten } from './table.ts';

export interface Progress extends Report {
  /** Clears the live lines. Call it before anything else is written. */
  end(): void;
}

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const FRAME_MS = 80;

/**
 * Two lines that are rewritten on a terminal, with how long the step takes from its second second on; without one, a plain
 * line per step. Data never passes here.
 */
export function openProgress(terminal: Terminal): Progress {
  return terminal.liveErr ? liveProgress(terminal) : plainProgress(terminal);
}

function plainProgress(terminal: Terminal): Progress {
  let last = '';
  return {
    step(title) {
      if (title === last) return;
      last = title;
      terminal.err(`${printable(title)}\n`);
    },
    detail() {},
    end() {},
  };
}

function liveProgress(terminal: Terminal): Progress {
  let title = '';
  let detail = '';
  let frame = 0;
  /** When the step began, in frames. */
  let since = 0;
  let drawn = 0;
  let timer: NodeJS.Timeout | undefined;

  function clear(): void {
    // Up over what was drawn, then erase to the end of the screen.
    if (drawn > 0) terminal.err(`\r\u001B[${drawn > 1 ? String(drawn - 1) + 'A' : '0G'}\u001B[0J`);
    drawn = 0;
  }
  function draw(): void {
    clear();
    frame += 1;
    const seconds = Math.floor(((frame - since) * FRAME_MS) / 1000);
    const elapsed = seconds < 2 ? '' : ` ${seconds} s`;
    const lines = [
      `${FRAMES[frame % FRAMES.length] ?? ''} ${cut(title, elapsed.length)}${elapsed}`,
      ...(detail === '' ? [] : [paint('dim', `  ${cut(detail)}`, terminal.colorErr)]),
    ];
    terminal.err(lines.join('\n'));
    drawn = lines.length;
  }
  const cut = (text: string, beside = 0): string =>
    shorten(printable(text), { width: Math.max(10, terminal.width - 4 - beside) });

  return {
    step(next) {
      if (next !== title) since = frame;
      title = next;
      detail = '';
      timer ??= setInterval(draw, FRAME_MS);
      draw();
    },
    detail(line) {
      detail = line;
    },
    end() {
      clearInterval(timer);
      timer = undefined;
      title = '';
      clear();
    },
  };
}
