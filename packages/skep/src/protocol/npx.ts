import {
  checkRecipeOptions,
  installPackages,
  PACKAGES_SCRIPT,
  stageHead,
  type BuildRecipe,
  type RecipeOptions,
} from './build-recipe.ts';
import { chooseBin } from './choose-bin.ts';

export const NPX_BASE_IMAGE = 'node:24-alpine';
const DEFAULT_PACKAGES = ['git', 'ca-certificates'];

/**
 * The two-stage build of an npm package (docs/behaviour/run.md#package-images). Everything that depends on the package
 * is an argument in exec form; the entry point is the program that package.json names, found in the build; the final
 * image runs as a numeric user and contains neither the certificate nor the registry's address.
 */
export function npxRecipe(options: RecipeOptions): BuildRecipe {
  checkRecipeOptions(options);
  return {
    files: {
      Dockerfile: dockerfile(options),
      'skep/packages.sh': PACKAGES_SCRIPT,
      'skep/link-entry.mjs': LINK_ENTRY_SCRIPT,
      'build/package.json': `${JSON.stringify({ name: 'skep-server', version: '1.0.0', private: true })}\n`,
      'skep/npmrc': options.registry === undefined ? '' : `registry=${options.registry}\n`,
      'home/.keep': '',
      ...(options.caCert === undefined ? {} : { 'skep/ca.crt': options.caCert }),
    },
  };
}

function dockerfile(options: RecipeOptions): string {
  const specifier = options.version === undefined ? options.name : `${options.name}@${options.version}`;
  const trustCa =
    options.caCert === undefined ? '' : ' NODE_EXTRA_CA_CERTS=/skep/ca.crt npm_config_cafile=/skep/ca.crt';
  const lines = [
    stageHead(`${options.baseImage} AS builder`, options.buildId),
    'COPY skep /skep',
    ...installPackages(DEFAULT_PACKAGES, options.addPackages),
    'WORKDIR /build',
    'COPY build /build',
    `ENV ${NPM_QUIET}${trustCa}`,
    `RUN ${JSON.stringify(['npm', 'install', '--save-exact', '--omit=dev', '--', specifier])}`,
    `RUN ${JSON.stringify(['node', '/skep/link-entry.mjs', options.name])}`,
    '',
    stageHead(options.baseImage, options.buildId),
    'COPY skep/packages.sh /skep/packages.sh',
    ...installPackages(DEFAULT_PACKAGES, options.addPackages),
    'COPY --chown=1000:1000 home /home/skep',
    // The server's own, because some write beside their code.
    'COPY --chown=1000:1000 --from=builder /build /app',
    'ENV NODE_ENV=production HOME=/home/skep NODE_PATH=/app/node_modules',
    'WORKDIR /app',
    'USER 1000:1000',
    'ENTRYPOINT ["/app/server/run"]',
    'CMD []',
  ];
  return `${lines.join('\n')}\n`;
}

/** Few retries: a package that is not there must be known in a second, not in a minute. */
const NPM_QUIET = [
  'NODE_ENV=production',
  'npm_config_audit=false',
  'npm_config_fund=false',
  'npm_config_progress=false',
  'npm_config_update_notifier=false',
  'npm_config_loglevel=error',
  'npm_config_userconfig=/skep/npmrc',
  'npm_config_fetch_retries=1',
  'npm_config_fetch_retry_mintimeout=1000',
].join(' ');

/** Runs in the builder stage; `server/run` becomes a link to the program, relative so that it holds under /app too. */
const LINK_ENTRY_SCRIPT = `import { chmodSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
const chooseBin = ${chooseBin.toString()};
const name = process.argv[2];
const manifest = JSON.parse(readFileSync('/build/node_modules/' + name + '/package.json', 'utf8'));
const choice = chooseBin(name, manifest.bin);
if (choice.path === undefined) {
  const found = choice.candidates.length === 0 ? 'it has no program' : 'its programs are ' + choice.candidates.join(', ');
  console.error('skep: cannot tell what to run in package "' + name + '": ' + found);
  process.exit(1);
}
const target = 'node_modules/' + name + '/' + choice.path;
chmodSync('/build/' + target, 0o755);
mkdirSync('/build/server');
symlinkSync('../' + target, '/build/server/run');
`;
