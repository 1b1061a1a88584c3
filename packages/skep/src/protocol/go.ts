import { sourcesEnv, type Scheme } from './build-recipe.ts';

/** Go packages: one static program, which the final image holds with authorities and nothing else (decision 0298). */
export const GO: Scheme = {
  name: 'go',
  baseImage: 'golang:1.26-alpine',
  packages: ['ca-certificates', 'git'],
  standsAlone: true,
  files: () => ({ 'skep/fetch.sh': FETCH_SCRIPT, 'skep/link-entry.sh': LINK_ENTRY_SCRIPT }),
  prepare: (options) => [
    'WORKDIR /build',
    ...sourcesEnv(options),
    'ENV CGO_ENABLED=0 GOOS=linux GO111MODULE=on GOTOOLCHAIN=local GOWORK=off GOBIN=/app/bin',
    ...(options.local === undefined ? [] : ['COPY source /build']),
  ],
  fetch: ({ name, version, local }) => {
    const what =
      local === undefined ? ['install', `${name}@${version ?? 'latest'}`] : ['build', local.target];
    return ['/bin/sh', '/skep/fetch.sh', ...what];
  },
  link: ({ name }) => ['/bin/sh', '/skep/link-entry.sh', name],
  result: () => ['COPY --from=builder /app/root /', 'ENV HOME=/home/skep'],
};

const FETCH_SCRIPT = `#!/bin/sh
mkdir -p /app/bin
[ "$1" = install ] || set -- "$@" -buildvcs=false -o /app/bin/
how=$1 what=$2; shift 2
exec go "$how" -trimpath '-ldflags=-s -w' "$@" -- "$what"
`;

/** Everything that the final image is made of lies below /app/root then. */
const LINK_ENTRY_SCRIPT = `#!/bin/sh
set -- "$1" /app/bin/*
if [ $# -ne 2 ] || [ ! -f "$2" ]; then echo "skep: package \\"$1\\" is no program (package main)" >&2; exit 1; fi
root=/app/root
mkdir -p $root/app/server $root/etc/ssl/certs $root/tmp && chmod 1777 $root/tmp && mv "$2" $root/app/server/run || exit
for bundle in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt; do
  [ ! -f $bundle ] || { cat $bundle >$root/etc/ssl/certs/ca-certificates.crt; break; }
done
`;
