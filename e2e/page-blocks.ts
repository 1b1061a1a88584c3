import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { repoRoot } from './require.ts';

interface Block {
  readonly language: string;
  readonly text: string;
}

/** Finds a block of a page by its language and what it holds. Fails when there is not exactly one. */
export async function blocksOf(file: string): Promise<(language: string, holding?: string) => string> {
  const page = await readFile(path.join(repoRoot, file), 'utf8');
  const blocks: readonly Block[] = [...page.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(
    ([, language = '', text = '']) => ({ language, text }),
  );
  return (language, holding = '') => {
    const isIt = (block: Block): boolean => block.language === language && block.text.includes(holding);
    const [found, ...others] = blocks.filter(isIt);
    if (found !== undefined && others.length === 0) return found.text;
    throw new Error(`${file} has not exactly one ${language} block that holds "${holding}"`);
  };
}
