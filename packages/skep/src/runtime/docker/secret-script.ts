import type { BuildSecrets } from '../build-secrets.ts';

/** In memory: an engine neither commits it nor writes it to a disk of its own. */
export const SECRETS_DIRECTORY = '/run/skep-build';

/**
 * Runs the command that it is given after a mark. What standard input says up to that mark is what the command is
 * given beside it; then nothing that is hidden may be in what the command made.
 */
export const WITH_SECRETS = `#!/bin/sh
dir=${SECRETS_DIRECTORY}
mark=$1; shift
umask 077
while IFS= read -r line; do [ "$line" != "$mark" ] || break; printf '%s\\n' "$line"; done >$dir/given
. $dir/given
umask 022
"$@" </dev/null || exit
[ -s $dir/hidden ] || exit 0
for tree in /build /opt/uv-tools /app; do
  [ -d $tree ] || continue
  grep -rlF -f $dir/hidden $tree >$dir/found
  case $? in
    1) ;;
    0) echo "skep: the package kept a secret of the build, in $(head -n 1 $dir/found)" >&2; exit 1 ;;
    *) echo "skep: what was fetched cannot be searched for secrets of the build" >&2; exit 1 ;;
  esac
done
`;

/** Lines of shell that give a command what it may know. Values are quoted, whatever is in them. */
export function secretLines({ env, files, hidden }: BuildSecrets): string {
  const { npmrc, netrc } = files;
  const write = (content: string, name: string): string =>
    `printf '%s\\n' ${quoted(content)} >${SECRETS_DIRECTORY}/${name}`;
  return [
    ...Object.entries(env).map(([name, value]) => `export ${name}=${quoted(value)}`),
    ...(npmrc === undefined
      ? []
      : [
          `{ [ ! -f /skep/npmrc ] || cat /skep/npmrc; ${write(npmrc, 'login')}; cat ${SECRETS_DIRECTORY}/login; } >${SECRETS_DIRECTORY}/npmrc`,
          `export npm_config_userconfig=${SECRETS_DIRECTORY}/npmrc`,
        ]),
    ...(netrc === undefined
      ? []
      : [
          write(netrc, 'netrc'),
          `export NETRC=${SECRETS_DIRECTORY}/netrc`,
          // git knows no other place.
          `ln -sf ${SECRETS_DIRECTORY}/netrc "\${HOME:-/root}/.netrc"`,
        ]),
    ...(hidden.length === 0 ? [] : [write(hidden.join('\n'), 'hidden')]),
    '',
  ].join('\n');
}

const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;
