import type { BuildRecipe, PackageRecipe } from '../../protocol/build-recipe.ts';
import type { BuildSecrets } from '../build-secrets.ts';
import type { Report } from '../runtime.ts';

/** One image to be built. */
export type BuildRequest = PlainBuild | SecretBuild;

export interface PlainBuild {
  readonly recipe: BuildRecipe;
  readonly tag: string;
  readonly buildId: string;
  /** As the user wrote it, for messages. */
  readonly subject: string;
  readonly secrets?: undefined;
  readonly report: Report;
  readonly signal: AbortSignal;
}

export interface SecretBuild extends Omit<PlainBuild, 'recipe' | 'secrets'> {
  readonly recipe: PackageRecipe;
  /** Given to the command that fetches the package, and to nothing else. */
  readonly secrets: BuildSecrets;
}
