export type BinChoice = { readonly path: string } | { readonly candidates: readonly string[] };

/**
 * Picks the program of an npm package as `npx` does: the only one, or the one named like the package. Takes the `name`
 * and `bin` members of a package.json; `candidates` lists what there was when the choice is not clear.
 *
 * Refers to nothing outside itself: npx.ts copies its source into the build.
 */
export function chooseBin(packageName: string, bin: unknown): BinChoice {
  const short = packageName.slice(packageName.indexOf('/') + 1);
  if (typeof bin === 'string') return { path: bin };
  if (typeof bin !== 'object' || bin === null) return { candidates: [] };
  const programs = Object.entries(bin).filter((entry) => typeof entry[1] === 'string');
  const distinct = new Set(programs.map((entry) => entry[1]));
  const named = programs.find((entry) => entry[0] === short);
  const chosen = named ?? (distinct.size === 1 ? programs[0] : undefined);
  return chosen ? { path: chosen[1] } : { candidates: programs.map((entry) => entry[0]) };
}
