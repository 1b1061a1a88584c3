import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { buildRecipe } from './build-recipe.ts';
import { GO } from './go.ts';
import { NPX } from './npx.ts';
import { standaloneDockerfile } from './standalone-dockerfile.ts';

const options = { name: 'server', baseImage: 'node:24-alpine', addPackages: [], buildId: 'build-7' };
/** Longer than a line may be, with what a shell or a Dockerfile would take for its own. */
const caCert = `-----BEGIN CERTIFICATE-----\n$(id) 'x' "y" \\n #\n${'a\n'.repeat(50_000)}`;

test('is one file of lines that builders take, and writes every file as it is', () => {
  const recipe = buildRecipe(NPX, { ...options, caCert });
  const text = standaloneDockerfile(recipe);
  const root = mkdtempSync(path.join(tmpdir(), 'skep-alone-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  for (const line of text.split('\n')) {
    expect(Buffer.byteLength(line)).toBeLessThan(65_535);
    expect(line).not.toMatch(/^COPY (?!.*--from=)|skep\.build/);
    if (!line.startsWith('RUN ["/bin/sh","-c"')) continue;
    const [file = '', ...args] = JSON.parse(line.slice('RUN '.length)) as string[];
    execFileSync(file, args.map((one) => one.replace(/^\/(?=skep\/|build\/)/, `${root}/`))); // prettier-ignore
  }
  for (const [name, content] of Object.entries(recipe.files)) {
    if (name !== 'Dockerfile') expect(readFileSync(path.join(root, name), 'utf8')).toBe(content);
  }
});

test('takes sources of the person from beside it', () => {
  const recipe = buildRecipe(GO, { ...options, local: { target: './cmd/x', parts: [] } });
  expect(standaloneDockerfile(recipe)).toContain(
    '\nCOPY . /build\nRUN ["/bin/sh","/skep/fetch.sh","build","./cmd/x"]',
  );
});
