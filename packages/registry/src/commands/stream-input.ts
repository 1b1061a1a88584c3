import { createInterface, type Interface } from 'node:readline';
import { Writable } from 'node:stream';

/** What people or scripts type in. */
export interface Input {
  readonly isTTY: boolean;
  /**
   * One line without its end; undefined when there is none left. At a terminal the question is shown on standard error
   * first, and a hidden answer is not shown while it is typed.
   */
  readLine(question: string, answer: 'shown' | 'hidden'): Promise<string | undefined>;
}

/** Reads lines of a stream, with questions on another. What follows a line that was read stays for the next. */
export function inputOf(stream: NodeJS.ReadStream, questions: NodeJS.WritableStream): Input {
  let lines: AsyncIterator<string> | undefined;
  return {
    get isTTY() {
      return stream.isTTY;
    },
    readLine: async (question, answer) => {
      if (stream.isTTY) return asked(stream, questions, { question, answer });
      // One reader for all lines: closing it would lose what it has read ahead.
      lines ??= createInterface({ input: stream })[Symbol.asyncIterator]();
      const next = await lines.next();
      return next.done === true ? undefined : next.value;
    },
  };
}

function asked(
  stream: NodeJS.ReadStream,
  questions: NodeJS.WritableStream,
  { question, answer }: { readonly question: string; readonly answer: 'shown' | 'hidden' },
): Promise<string | undefined> {
  questions.write(question);
  // The terminal is put into raw mode, where nothing is shown but what readline writes.
  const output =
    answer === 'hidden' ? new Writable({ write: (_chunk, _encoding, done) => done() }) : questions;
  const reader: Interface = createInterface({ input: stream, output, terminal: true, prompt: '' });
  return new Promise((resolve) => {
    let line: string | undefined;
    reader.once('line', (text) => {
      line = text;
      reader.close();
    });
    reader.once('SIGINT', () => reader.close());
    reader.once('close', () => {
      if (answer === 'hidden') questions.write('\n');
      resolve(line);
    });
  });
}
