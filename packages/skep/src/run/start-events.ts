import type { Terminal } from '../print/terminal.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { Progress } from '../print/progress.ts';
import type { Tell } from '../supervisor/events.ts';

/** Shows a start to the person who waits: steps as progress, a crashing server's last lines as they are. */
export function startEvents(progress: Progress, terminal: Terminal): Tell {
  return (event) => {
    if (event.kind === 'step') return progress.step(event.title);
    if (event.kind === 'saved') return;
    progress.end();
    if (event.kind === 'told') terminal.err(event.text);
    else if (event.kind === 'warning') terminal.err(`Warning: ${printable(event.text)}\n`);
    else terminal.err(`  ${printable(event.line)}\n`);
  };
}
