import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import path from 'node:path';
import { ensureScriptImage } from '../../e2e/images.ts';

const PROGRAM = path.join(import.meta.dirname, 'echo-server.ts');

/** The command of the smallest stdio server. */
export const ECHO = [process.execPath, PROGRAM];

/** The same server as an image. */
export const echoImage = (): Promise<string> =>
  ensureScriptImage('skep-test/echo:1', stripTypeScriptTypes(readFileSync(PROGRAM, 'utf8')));
