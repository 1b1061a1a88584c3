import { styleText } from 'node:util';

export type Format = 'bold' | 'dim' | 'red' | 'green' | 'yellow';

/** The text in a format, where the caller knows of a terminal that shows it. */
export function paint(format: Format, text: string, color: boolean): string {
  return color ? styleText(format, text, { validateStream: false }) : text;
}
