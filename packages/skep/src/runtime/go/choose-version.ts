import { comparePrecedence } from '@skep/core/catalog/version-order.ts';

const RELEASE = /^v\d+\.\d+\.\d+(?:\+incompatible)?$/;
const PRE_RELEASE = /^v\d+\.\d+\.\d+-[0-9A-Za-z.-]+(?:\+incompatible)?$/;

/**
 * The version that `latest` means, as Go chooses among those that a proxy lists: the newest release, else the newest
 * pre-release, none that was retracted. Undefined where there is none.
 */
export function chooseGoVersion(
  listed: readonly string[],
  isRetracted: (version: string) => boolean = () => false,
): string | undefined {
  const sound = listed.filter((one) => !isRetracted(one));
  const releases = sound.filter((one) => RELEASE.test(one));
  const compatible = releases.filter((one) => !one.endsWith('+incompatible'));
  const [chosen] = [compatible, releases, sound.filter((one) => PRE_RELEASE.test(one))].filter((one) => one.length > 0); // prettier-ignore
  return chosen?.toSorted(comparePrecedence).at(-1);
}

/** What a go.mod takes back ("Go modules reference", retract): single versions and ranges. */
export function retractions(goMod: string): (version: string) => boolean {
  const plain = goMod.replaceAll(/\/\/.*$/gm, '');
  const blocks = [...plain.matchAll(/^\s*retract\s*\(([^)]*)\)/gm)].map(([, inside = '']) => inside);
  const lines = [...plain.matchAll(/^\s*retract\s+([^(\s].*)$/gm)].map(([, one = '']) => one);
  const ranges = [...blocks, ...lines].join('\n').matchAll(/\[\s*(v\S+?)\s*,\s*(v\S+?)\s*\]|(v[^\s,\]]+)/g);
  const all = [...ranges].map(([, low, high, one = '']) => [low ?? one, high ?? one] as const);
  return (version) =>
    all.some(([low, high]) => comparePrecedence(version, low) >= 0 && comparePrecedence(version, high) <= 0);
}
