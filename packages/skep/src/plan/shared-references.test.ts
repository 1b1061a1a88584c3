import { existsSync, globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { parsePackageReference } from '../protocol/reference.ts';
import { parseImageReference } from '../runtime/docker/image-reference.ts';

// Catalogues of others, where they are present beside the repository.
const data = resolve(import.meta.dirname, '../../../../../shared/data');

/** Of a package, and what it runs on. */
interface Listed {
  readonly packageName: string;
  readonly packageVersion?: string;
  readonly runtime: string;
}

const SCHEMES: Readonly<Record<string, string>> = { node: 'npx', python: 'uvx', go: 'go' };

/** Why a reference is refused, without the reference; undefined when it is taken. */
function refusal(parsed: () => unknown): string | undefined {
  try {
    parsed();
    return undefined;
  } catch (error) {
    const { code, hint } = error as { code: string; hint: string };
    expect(hint).not.toBe('');
    return code;
  }
}

function counted(reasons: readonly (string | undefined)[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const reason of reasons) counts[reason ?? 'taken'] = (counts[reason ?? 'taken'] ?? 0) + 1;
  return counts;
}

describe.skipIf(!existsSync(data))(
  'references of real catalogues (skipped where ../shared/data is absent)',
  () => {
    test('every image of Docker’s is taken, as it is written', () => {
      const files = globSync('*/server.yaml', { cwd: join(data, 'catalog-docker/servers') });
      const images = files.flatMap((file) => {
        const { image } = parse(readFileSync(join(data, 'catalog-docker/servers', file), 'utf8')) as {
          image?: string;
        };
        return image === undefined ? [] : [image];
      });
      expect(images.length).toBeGreaterThan(150);
      expect(counted(images.map((image) => refusal(() => parseImageReference(image))))).toEqual({
        taken: images.length,
      });
    });

    test('every package of ToolSDK is taken, or refused with a reason', () => {
      const listed = JSON.parse(readFileSync(join(data, 'catalog-toolsdk/sample.json'), 'utf8')) as Listed[];
      const packages = listed.filter(({ runtime }) => runtime in SCHEMES);
      const refused = packages.filter(({ packageName, packageVersion, runtime }) => {
        const version = packageVersion === undefined ? '' : `@${packageVersion}`;
        const reference = `${SCHEMES[runtime]}://${packageName}${version}`;
        const reason = refusal(() => parsePackageReference(reference));
        expect([undefined, 'target/invalid-package'], reference).toContain(reason);
        return reason !== undefined;
      });
      // A title instead of a name: blanks, brackets, scopes where the ecosystem has none, a Go module without its host.
      for (const { packageName, runtime } of refused) {
        const isName =
          runtime === 'go'
            ? packageName.includes('.') && packageName.includes('/')
            : /^[\w.-]+$/.test(packageName);
        expect(isName, packageName).toBe(false);
      }
      expect(packages.length - refused.length).toBeGreaterThan(350);
    });
  },
);
