import { SkepError } from '@skep/core/errors/skep-error.ts';

/** What an engine needs to build the image of a package: nothing here comes from the user's working directory. */
export interface BuildRecipe {
  /** Path in the build context → content; `Dockerfile` among them. */
  readonly files: Readonly<Record<string, string>>;
}

/** What the builds of one scheme do not share with those of the others. */
export interface Scheme {
  readonly name: 'npx' | 'uvx';
  readonly baseImage: string;
  /** System packages for both stages, where the base image can have them. */
  readonly packages: readonly string[];
  /** Beside those of every build. */
  readonly files: (options: RecipeOptions) => BuildRecipe['files'];
  /** Lines of the builder stage that install the package and find its program. */
  readonly install: (options: RecipeOptions) => readonly string[];
  /** Lines of the final stage; `/app/server/run` is the program after them. */
  readonly result: readonly string[];
}

/**
 * The two-stage build of a package (docs/behaviour/run.md#package-images). Everything that depends on the package is an
 * argument in exec form; the entry point is found in the build; the final image runs as a numeric user and contains
 * neither the certificate nor the registry's address. Throws as `checkRecipeOptions` does.
 */
export function buildRecipe(scheme: Scheme, options: RecipeOptions): BuildRecipe {
  checkRecipeOptions(options);
  const { addPackages, baseImage, buildId, caCert } = options;
  const lines = [
    stageHead(`${baseImage} AS builder`, buildId),
    'COPY skep /skep',
    ...installPackages(scheme.packages, addPackages),
    ...scheme.install(options),
    '',
    stageHead(baseImage, buildId),
    'COPY skep/packages.sh /skep/packages.sh',
    ...installPackages(scheme.packages, addPackages),
    'COPY --chown=1000:1000 home /home/skep',
    // What it keeps: a volume there begins as the image has it, the server's own.
    'COPY --chown=1000:1000 home /data',
    ...scheme.result,
    'WORKDIR /app',
    'USER 1000:1000',
    'ENTRYPOINT ["/app/server/run"]',
    'CMD []',
  ];
  return {
    files: {
      Dockerfile: `${lines.join('\n')}\n`,
      'skep/packages.sh': PACKAGES_SCRIPT,
      ...scheme.files(options),
      'home/.keep': '',
      ...(caCert === undefined ? {} : { 'skep/ca.crt': caCert }),
    },
  };
}

export interface RecipeOptions {
  readonly name: string;
  /** Version or tag; absent means the newest. */
  readonly version?: string;
  readonly baseImage: string;
  /** System packages to install in both stages; failing to is fatal for these. */
  readonly addPackages: readonly string[];
  /** PEM text the builder stage trusts. It never reaches the final image. */
  readonly caCert?: string;
  /** Address of the package registry for the builder stage, without credentials. */
  readonly registry?: string;
  /** Random token that marks every layer of this build, so that a failed one can be swept. */
  readonly buildId: string;
}

/** Label that every layer of one build carries. */
export const BUILD_LABEL = 'skep.build';

/** First lines of a stage: labels come first so that an abandoned layer can be found by them. */
function stageHead(base: string, buildId: string): string {
  return `FROM ${base}\nLABEL skep.managed=true ${BUILD_LABEL}=${buildId}`;
}

/**
 * Shell script that installs system packages with whatever package manager the base image has. Names come as
 * arguments, never inside the script. `optional` ones may fail (an image may have neither mirror nor manager), with a
 * note; `required` ones may not.
 */
const PACKAGES_SCRIPT = `#!/bin/sh
mode=$1; shift
[ $# -gt 0 ] || exit 0
if command -v apk >/dev/null 2>&1; then apk add --no-cache "$@"
elif command -v apt-get >/dev/null 2>&1; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update && apt-get install -y --no-install-recommends "$@" && rm -rf /var/lib/apt/lists/*
elif command -v dnf >/dev/null 2>&1; then dnf install -y "$@" && dnf clean all
else echo "skep: the base image has no package manager (apk, apt-get, dnf)" >&2; false
fi && exit 0
[ "$mode" = optional ] || exit 1
echo "skep: going on without the optional packages: $*" >&2
`;

/** RUN lines for the default packages and the user's, in exec form. The script must lie at /skep/packages.sh. */
function installPackages(optional: readonly string[], required: readonly string[]): string[] {
  const line = (mode: string, names: readonly string[]) =>
    names.length === 0 ? [] : [`RUN ${JSON.stringify(['/bin/sh', '/skep/packages.sh', mode, ...names])}`];
  return [...line('optional', optional), ...line('required', required)];
}

/** What a person may say about the base of an image. */
type BaseAndPackages = Partial<Pick<RecipeOptions, 'baseImage' | 'registry'>> &
  Pick<RecipeOptions, 'addPackages'>;

/** Throws `runtime/invalid-workload` for a base image, registry or system package name that could break out of its line. */
export function checkRecipeOptions(options: BaseAndPackages): void {
  if (options.baseImage !== undefined && !/^[A-Za-z0-9][A-Za-z0-9._:/@-]*$/.test(options.baseImage)) {
    throw new SkepError('runtime/invalid-workload', {
      message: `invalid base image "${options.baseImage}"`,
      hint: 'give --runtime-image an image reference such as node:24-alpine',
    });
  }
  if (options.registry !== undefined && /\s/.test(options.registry)) {
    throw new SkepError('runtime/invalid-workload', {
      message: 'the address of the package registry contains white space',
      hint: 'correct it in the settings of the package manager',
    });
  }
  const bad = options.addPackages.find((name) => !/^[A-Za-z0-9][A-Za-z0-9+._-]{0,127}$/.test(name));
  if (bad !== undefined) {
    throw new SkepError('runtime/invalid-workload', {
      message: `invalid system package "${bad}"`,
      hint: 'give --runtime-add-package one package name each time',
    });
  }
}
