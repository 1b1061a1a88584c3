import { wrapText } from '@skep/core/settings/to-help.ts';
import type { Terminal } from '@skep/core/command/terminal.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { Progress } from '../print/progress.ts';
import { cardFacts, toFacts } from '../print/table.ts';
import type { Endpoint, ShownCard, Tell } from '../supervisor/protocol.ts';

const INDENT = '  ';
import { frontUrl } from '../supervisor/front-state.ts';

/** Shows a start to the person who waits: steps as progress, a crashing server's last lines as they are. */
export function startEvents(progress: Progress, terminal: Terminal): Tell {
  return (event) => {
    if (event.kind === 'step') return progress.step(event.title);
    if (event.kind === 'saved' || event.kind === 'card') return;
    progress.end();
    if (event.kind === 'told') terminal.err(event.text);
    else if (event.kind === 'warning') terminal.err(`Warning: ${printable(event.text)}\n`);
    else terminal.err(`  ${printable(event.line)}\n`);
  };
}

/** How a start ended, for people: the beginning of a sentence. */
export function whenReady(name: string, { readiness }: Endpoint): string {
  const running = `${name} is running`;
  if (readiness?.is === 'silent')
    return `${running}, but has not answered within a minute (skep status ${name} says when it has)`;
  if (readiness?.is === 'unchecked') return `${running}, and was not asked whether it answers`;
  return readiness?.server === undefined ? running : `${running} (${readiness.server})`;
}

/** A permission card below what it belongs to. */
export function cardText(card: ShownCard, { liveErr, width, colorErr }: Terminal): string {
  const screen = { widthOut: liveErr ? width - INDENT.length : Infinity, colorOut: colorErr };
  return toFacts(cardFacts(card), screen).replaceAll(/^(?=.)/gm, INDENT);
}

/** A workload that runs, as the person who started it is told of it. */
export interface Started {
  readonly name: string;
  readonly url: string;
  readonly endpoint: Endpoint;
  readonly card: ShownCard;
}

/**
 * Prints what a person wanted of a run: the URL (at the front door, where that is open) on stdout, and on stderr what the server may do and what there is to do
 * with it.
 */
export function tellReady({ name, url, endpoint, card }: Started, terminal: Terminal): void {
  const { front } = endpoint;
  if (front?.is === 'closed') terminal.err(`Warning: ${printable(front.why)}\n`);
  const shown = front?.is === 'open' ? frontUrl(front.port, name) : url;
  terminal.out(`${shown}\n`);
  const { liveOut, liveErr, width } = terminal;
  // What went to a file stands above nothing.
  const told = `${whenReady(name, endpoint)}: connect an MCP client to ${liveOut ? 'the URL above' : shown}.`;
  const next = ['logs', 'stop', 'rm'].map((command) => `skep ${command} ${name}`);
  const line = next.join('   ');
  const isTooWide = liveErr && line.length + 2 > width;
  const lines = [
    ...(liveErr ? wrapText(told, width) : [told]),
    ...(isTooWide ? next : [line]).map((one) => `  ${one}`),
  ];
  terminal.err(`${cardText(card, terminal)}${lines.join('\n')}\n`);
}

/** Names what a removed workload leaves behind, and how that goes away as well. */
export function tellStays(
  name: string,
  stays: readonly string[],
  terminal: Pick<Terminal, 'err' | 'liveErr' | 'width'>,
): void {
  if (stays.length === 0) return;
  const told = printable(
    `The data of ${name} stays, for the next skep run of that name (skep rm --data ${name} removes it):`,
  );
  const lines = terminal.liveErr ? wrapText(told, terminal.width) : [told];
  terminal.err(`${[...lines, ...stays.map((one) => `  ${printable(one)}`)].join('\n')}\n`);
}
