import type { PackageRecipe } from './build-recipe.ts';

/** Writes triples of how, path and content, which come as arguments: `w` begins a file, `a` goes on with it. */
const WRITE =
  'while [ $# -gt 0 ]; do mkdir -p "${2%/*}" && { [ $1 = a ] || : >"$2"; } && printf %s "$3" >>"$2" || exit; shift 3; done';

/** Builders take lines of 64 KiB; a character may need six in JSON. */
const CHUNK = 8_000;

/**
 * The Dockerfile of a recipe as one file that any builder takes alone, or with the person's own sources: what Skep puts into
 * the context is written by the build itself. Marks by which Skep finds and removes what it built are left out.
 */
export function standaloneDockerfile({ files }: PackageRecipe): string {
  const lines = (files['Dockerfile'] ?? '').split('\n');
  return lines
    .filter((line) => !line.startsWith('LABEL skep.'))
    .flatMap((line) => {
      const [, from, to = ''] = /^COPY (\w+) (\/\w+)$/.exec(line) ?? [];
      if (from === undefined) return [line];
      // What the builder is given beside it then.
      if (from === 'source') return [`COPY . ${to}`];
      const below = Object.entries(files).filter(([name]) => name.startsWith(`${from}/`));
      const small = below.filter(([, content]) => content.length <= CHUNK);
      const large = below.filter(([, content]) => content.length > CHUNK);
      const at = (name: string): string => to + name.slice(from.length);
      const together = small.map(([name, content]) => ['w', at(name), content]);
      const inParts = large.flatMap(([name, content]) =>
        partsOf(content).map((part, index) => [[index === 0 ? 'w' : 'a', at(name), part]]),
      );
      return [together, ...inParts].map(
        (triples) => `RUN ${JSON.stringify(['/bin/sh', '-c', WRITE, 'sh', ...triples.flat()])}`,
      );
    })
    .join('\n');
}

function partsOf(content: string): readonly string[] {
  const characters = Array.from(content);
  const count = Math.ceil(characters.length / CHUNK);
  return Array.from({ length: count }, (_part, at) =>
    characters.slice(at * CHUNK, (at + 1) * CHUNK).join(''),
  );
}
