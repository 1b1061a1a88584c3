import { styleText } from 'node:util';

/** The text in a format, where the caller knows of a terminal that shows it. */
export function paint(format: 'bold' | 'dim' | 'red', text: string, color: boolean): string {
  return color ? styleText(format, text, { validateStream: false }) : text;
}
