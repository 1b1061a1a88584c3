import { SkepError } from '@skep/core/errors/skep-error.ts';

import { runtimeEnvLines } from './runtime-env.ts';

/** What an engine needs to build the image of a package: nothing here comes from the user's working directory. */
export interface BuildRecipe {
  /** Path in the build context → content; `Dockerfile` among them. */
  readonly files: Readonly<Record<string, string>>;
  /** Sources of the person's own, below `source` in the context. */
  readonly sources?: readonly SourcePart[];
}

/** A directory, a link or a file of sources, in the order that they are made in. */
export type SourcePart =
  | { readonly kind: 'directory'; readonly name: string }
  | { readonly kind: 'link'; readonly name: string; readonly target: string }
  | { readonly kind: 'file'; readonly name: string; readonly content: Buffer };

export interface PackageRecipe extends BuildRecipe {
  /** The same Dockerfile in parts: what comes before the command that fetches the package, that command, what follows. */
  readonly head: string;
  readonly fetch: readonly string[];
  readonly tail: string;
}

/** What the builds of one scheme do not share with those of the others. */
export interface Scheme {
  readonly name: 'npx' | 'uvx' | 'go';
  readonly baseImage: string;
  /** System packages for both stages, where the base image can have them. */
  readonly packages: readonly string[];
  /** Beside those of every build. */
  readonly files: (options: RecipeOptions) => BuildRecipe['files'];
  /** Lines of the builder stage before anything is fetched. */
  readonly prepare: (options: RecipeOptions) => readonly string[];
  /** What fetches the package and all that it needs, and nothing else does: a command in exec form. */
  readonly fetch: (options: RecipeOptions) => readonly string[];
  /** What finds the program of the package then, without a network. */
  readonly link: (options: RecipeOptions) => readonly string[];
  /** The program needs nothing of the base image, so the final stage is empty unless system packages are added to it. */
  readonly standsAlone?: true;
  /** Lines of the final stage; `/app/server/run` is the program after them. */
  readonly result: (options: RecipeOptions) => readonly string[];
}

/**
 * The two-stage build of a package (docs/behaviour/run.md#package-images). Everything that depends on the package is an
 * argument in exec form; the entry point is found in the build; the final image runs as a numeric user and contains
 * neither the certificate nor the registry's address. Throws as `checkRecipeOptions` does.
 */
export function buildRecipe(scheme: Scheme, options: RecipeOptions): PackageRecipe {
  checkRecipeOptions(options);
  if ((options.buildWith ?? []).length > 0 && scheme.name !== 'uvx') {
    throw new SkepError('runtime/invalid-workload', {
      message: `build_with is not supported for ${scheme.name}:// builds`,
      hint: 'leave out --build-with',
    });
  }
  const { addPackages, baseImage, buildId, caCert, args = [] } = options;
  const alone = scheme.standsAlone === true && addPackages.length === 0;
  const head = [
    stageHead(`${baseImage} AS builder`, buildId),
    'COPY skep /skep',
    ...installPackages(scheme.packages, addPackages),
    ...(caCert === undefined ? [] : TRUST),
    ...scheme.prepare(options),
  ];
  const tail = [
    run(scheme.link(options)),
    '',
    stageHead(alone ? 'scratch' : baseImage, buildId),
    ...(alone ? [] : resultPackages(scheme, options)),
    'COPY --from=builder --chown=1000:1000 /skep/home /home/skep',
    // What it keeps: a volume there begins as the image has it, the server's own.
    'COPY --from=builder --chown=1000:1000 /skep/home /data',
    ...scheme.result(options),
    ...runtimeEnvLines(options.env),
    'WORKDIR /app',
    'USER 1000:1000',
    `ENTRYPOINT ${JSON.stringify(['/app/server/run', ...args])}`,
    'CMD []',
  ];
  const fetch = scheme.fetch(options);
  return {
    files: {
      Dockerfile: textOf([...head, run(fetch), ...tail]),
      'skep/packages.sh': PACKAGES_SCRIPT,
      ...scheme.files(options),
      'skep/home/.keep': '',
      ...(caCert === undefined ? {} : { 'skep/ca.crt': caCert }),
    },
    ...(options.local === undefined ? {} : { sources: options.local.parts }),
    head: textOf(head),
    fetch,
    tail: textOf(tail),
  };
}

const textOf = (lines: readonly string[]): string => `${lines.join('\n')}\n`;

/** Lines of the builder stage for settings that are variables. */
export function sourcesEnv({ sources = {} }: RecipeOptions): readonly string[] {
  const all = Object.entries(sources).map(([name, value]) => `${name}=${value}`);
  return all.length === 0 ? [] : [`ENV ${all.join(' ')}`];
}

/**
 * The line of the final stage by which a server finds the programs that its package brought by their names, as it does in the
 * sandbox: behind those of the base image (decision 0456).
 */
export const programsIn = (directory: string): string =>
  `ENV PATH=\${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}:${directory}`;

const run = (command: readonly string[]): string => `RUN ${JSON.stringify(command)}`;

/** Package managers may need the certificate for the person's own packages; it is taken away again. */
function resultPackages(scheme: Scheme, { addPackages, caCert }: RecipeOptions): readonly string[] {
  const trusted = caCert !== undefined && addPackages.length > 0;
  return [
    `COPY --from=builder /skep/packages.sh ${trusted ? '/skep/ca.crt ' : ''}/skep/`,
    ...installPackages(scheme.packages, addPackages),
  ];
}

/** Authorities of the base image and the one of the person, as the package managers of all ecosystems take them. */
const TRUST = [
  'RUN ["/bin/sh", "/skep/packages.sh", "trust"]',
  'ENV SSL_CERT_FILE=/skep/trust.crt PIP_CERT=/skep/trust.crt GIT_SSL_CAINFO=/skep/trust.crt NODE_EXTRA_CA_CERTS=/skep/ca.crt',
];

export interface RecipeOptions {
  readonly name: string;
  /** Version or tag; absent means the newest. */
  readonly version?: string;
  readonly baseImage: string;
  /** System packages to install in both stages; failing to is fatal for these. */
  readonly addPackages: readonly string[];
  /** PEM text the builder stage trusts. It never reaches the final image. */
  readonly caCert?: string;
  /**
   * Where the package manager gets packages from, without credentials: settings of npm, variables of uv and go. The
   * builder stage alone has them.
   */
  readonly sources?: Readonly<Record<string, string>>;
  /** Requirements beside the package: uvx alone. */
  readonly buildWith?: readonly string[];
  /** Sources of this machine, and which package of them: Go alone. */
  readonly local?: { readonly target: string; readonly parts: readonly SourcePart[] };
  /** Variables of the final image, checked by `runtimeEnvShape`. */
  readonly env?: Readonly<Record<string, string>>;
  /** Baked into the entry point, before what a container is given. */
  readonly args?: readonly string[];
  /** Random token that marks every layer of this build, so that a failed one can be swept. */
  readonly buildId: string;
}

/** Label that every layer of one build carries. */
export const BUILD_LABEL = 'skep.build';

/**
 * First lines of a stage: labels come first so that an abandoned layer can be found by them. A base image may have a user
 * who may install nothing.
 */
function stageHead(base: string, buildId: string): string {
  const user = base === 'scratch' ? '' : '\nUSER 0:0';
  return `FROM ${base}\nLABEL skep.managed=true ${BUILD_LABEL}=${buildId}${user}`;
}

/**
 * Shell script that installs system packages with whatever package manager the base image has. Names come as
 * arguments, never inside the script. `optional` ones may fail (an image may have neither mirror nor manager), with a
 * note; `required` ones may not. The person's certificate is trusted meanwhile; `trust` writes it with the image's own
 * authorities to /skep/trust.crt.
 */
const PACKAGES_SCRIPT = `#!/bin/sh
mode=$1; shift
bundle=/etc/ssl/certs/ca-certificates.crt
if [ "$mode" = trust ]; then
  { [ ! -f "$bundle" ] || cat "$bundle"; echo; cat /skep/ca.crt; } >/skep/trust.crt; exit
fi
[ $# -gt 0 ] || exit 0
install() {
  if command -v apk >/dev/null 2>&1; then apk add --no-cache "$@"
  elif command -v apt-get >/dev/null 2>&1; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update && apt-get install -y --no-install-recommends "$@" && rm -rf /var/lib/apt/lists/*
  elif command -v microdnf >/dev/null 2>&1; then microdnf install -y "$@" && microdnf clean all
  elif command -v dnf >/dev/null 2>&1; then dnf install -y "$@" && dnf clean all
  else echo "skep: the base image has no package manager (apk, apt-get, dnf)" >&2; false
  fi
}
if [ -f /skep/ca.crt ]; then
  mkdir -p /etc/ssl/certs
  [ ! -f "$bundle" ] || cp "$bundle" /skep/own.crt
  { echo; cat /skep/ca.crt; } >>"$bundle"
fi
install "$@"; status=$?
if [ -f /skep/ca.crt ]; then
  update-ca-certificates >/dev/null 2>&1 || { rm -f "$bundle"; [ ! -f /skep/own.crt ] || cp /skep/own.crt "$bundle"; }
  rm -f /skep/own.crt
fi
[ $status -eq 0 ] && exit 0
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
type BaseAndPackages = Partial<Pick<RecipeOptions, 'baseImage' | 'sources' | 'buildWith'>> &
  Pick<RecipeOptions, 'addPackages'>;

/** Throws `runtime/invalid-workload` for a base image, registry or system package name that could break out of its line. */
export function checkRecipeOptions(options: BaseAndPackages): void {
  if (options.baseImage !== undefined && !/^[A-Za-z0-9][A-Za-z0-9._:/@-]*$/.test(options.baseImage)) {
    throw new SkepError('runtime/invalid-workload', {
      message: `invalid base image "${options.baseImage}"`,
      hint: 'give --runtime-image an image reference such as node:24-alpine',
    });
  }
  for (const [key, value] of Object.entries(options.sources ?? {})) {
    if (/^[\w@:/.-]+$/.test(key) && !/[\s"'`$\\]/.test(value)) continue;
    throw new SkepError('runtime/invalid-workload', {
      message: `${JSON.stringify(key)}, where packages come from, contains white space or quotes`,
      hint: 'correct it in the settings of the package manager',
    });
  }
  const requirement = options.buildWith?.find((one) => !/^[A-Za-z0-9][\w.+[\],<>=!~* -]{0,199}$/.test(one));
  if (requirement !== undefined) {
    throw new SkepError('runtime/invalid-workload', {
      message: `invalid requirement ${JSON.stringify(requirement)}`,
      hint: 'give --build-with one requirement each time, such as "mcp<2"',
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
