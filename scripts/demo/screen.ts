import { styleText } from 'node:util';

/** Prints the demo: numbered chapters, aligned facts, and what a newcomer would type. */
export interface Screen {
  title(text: string, about: string): void;
  chapter(text: string): void;
  fact(label: string, value: string): void;
  typed(command: string): void;
  done(text: string): void;
  note(text: string): void;
  block(lines: readonly string[]): void;
}

export function screenOn(stream: NodeJS.WriteStream): Screen {
  const colour = stream.isTTY && process.env['NO_COLOR'] === undefined;
  const style = (format: Parameters<typeof styleText>[0], text: string): string =>
    colour ? styleText(format, text, { validateStream: false }) : text;
  const line = (text = ''): void => void stream.write(`${text}\n`);
  let chapter = 0;
  return {
    title(text, about) {
      line();
      line(`  ${style('bold', text)}  ${style('dim', about)}`);
    },
    chapter(text) {
      chapter += 1;
      line();
      line(`  ${style(['bold', 'cyan'], String(chapter))}  ${style('bold', text)}`);
    },
    fact(label, value) {
      line(`     ${style('dim', label.padEnd(13))} ${value}`);
    },
    typed(command) {
      line(`     ${style('dim', '$')} ${style('yellow', command)}`);
    },
    done(text) {
      line(`     ${style('green', '✓')} ${text}`);
    },
    note(text) {
      line(`     ${style('yellow', '!')} ${text}`);
    },
    block(lines) {
      for (const text of lines) line(`     ${style('dim', '│')} ${text}`);
    },
  };
}
