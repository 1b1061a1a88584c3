import { programsIn, type Scheme } from './build-recipe.ts';
import { chooseBin } from './choose-bin.ts';

/** npm packages. The program is the one that package.json names. */
export const NPX: Scheme = {
  name: 'npx',
  baseImage: 'node:24-alpine',
  packages: ['git', 'ca-certificates'],
  files: ({ sources = {} }) => ({
    'skep/link-entry.mjs': LINK_ENTRY_SCRIPT,
    'build/package.json': `${JSON.stringify({ name: 'skep-server', version: '1.0.0', private: true })}\n`,
    'skep/npmrc': Object.entries(sources)
      .map(([key, value]) => `${key}=${value}\n`)
      .join(''),
  }),
  prepare: () => ['WORKDIR /build', 'COPY build /build', `ENV ${NPM_QUIET}`],
  fetch: ({ name, version }) => {
    const specifier = version === undefined ? name : `${name}@${version}`;
    return ['npm', 'install', '--save-exact', '--omit=dev', '--', specifier];
  },
  link: ({ name }) => ['node', '/skep/link-entry.mjs', name],
  result: () => [
    // The server's own, because some write beside their code.
    'COPY --chown=1000:1000 --from=builder /build /app',
    'ENV NODE_ENV=production HOME=/home/skep NODE_PATH=/app/node_modules',
    programsIn('/app/node_modules/.bin'),
  ],
};

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

/** Runs in the builder stage; links `server/run` to the program, relative so that it holds under /app. */
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
