import { programsIn, sourcesEnv, type Scheme } from './build-recipe.ts';

/**
 * PyPI packages, by `uv tool install`. The program is the only script the package brings, or the one named like it.
 */
export const UVX: Scheme = {
  name: 'uvx',
  baseImage: 'python:3.14-slim',
  packages: ['ca-certificates', 'git'],
  files: () => ({ 'skep/fetch.sh': FETCH_SCRIPT, 'skep/link-entry.py': LINK_ENTRY_SCRIPT }),
  prepare: (options) => [
    ...sourcesEnv(options),
    'ENV UV_TOOL_DIR=/opt/uv-tools UV_TOOL_BIN_DIR=/opt/uv-tools/bin UV_PYTHON_DOWNLOADS=never UV_NO_PROGRESS=1',
  ],
  fetch: ({ name, version, buildWith = [] }) => {
    const requirement = version === undefined ? name : `${name}==${version}`;
    const beside = buildWith.flatMap((one) => ['--with', one]);
    return ['/bin/sh', '/skep/fetch.sh', ...beside, '--', requirement];
  },
  link: ({ name }) => ['python3', '/skep/link-entry.py', name],
  result: () => [
    'COPY --from=builder /opt/uv-tools /opt/uv-tools',
    'COPY --from=builder /app/server /app/server',
    'ENV HOME=/home/skep PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1',
    programsIn('/opt/uv-tools/bin'),
  ],
};

/** Images of uv have it already. Its receipt says where packages came from, with the login. */
const FETCH_SCRIPT = `#!/bin/sh
command -v uv >/dev/null 2>&1 || python3 -m pip install --no-cache-dir --disable-pip-version-check uv || exit
uv tool install --no-cache "$@" || exit
rm -f /opt/uv-tools/*/uv-receipt.toml
`;

/** Names are compared as PEP 503 normalises them: a package `mcp_server.git` may bring the script `mcp-server-git`. */
const LINK_ENTRY_SCRIPT = `import os, re, sys
name, tools = sys.argv[1], '/opt/uv-tools/bin'
found = sorted(os.listdir(tools))
same = lambda text: re.sub(r'[-_.]+', '-', text).lower()
chosen = [one for one in found if same(one) == same(name)] or (found if len(found) == 1 else [])
if not chosen:
    listing = 'its programs are ' + ', '.join(found) if found else 'it has no program'
    sys.exit('skep: cannot tell what to run in package "' + name + '": ' + listing)
os.makedirs('/app/server')
os.symlink(os.path.join(tools, chosen[0]), '/app/server/run')
`;
