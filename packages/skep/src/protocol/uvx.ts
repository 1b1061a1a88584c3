import {
  checkRecipeOptions,
  installPackages,
  PACKAGES_SCRIPT,
  stageHead,
  type BuildRecipe,
  type RecipeOptions,
} from './build-recipe.ts';

export const UVX_BASE_IMAGE = 'python:3.14-slim';
const DEFAULT_PACKAGES = ['ca-certificates', 'git'];

/**
 * The two-stage build of a PyPI package (docs/behaviour/run.md#package-images) with `uv tool install`. The entry point
 * is the only script the package brings, or the one named like it, found in the build.
 */
export function uvxRecipe(options: RecipeOptions): BuildRecipe {
  checkRecipeOptions(options);
  return {
    files: {
      Dockerfile: dockerfile(options),
      'skep/packages.sh': PACKAGES_SCRIPT,
      'skep/link-entry.py': LINK_ENTRY_SCRIPT,
      'home/.keep': '',
      ...(options.caCert === undefined ? {} : { 'skep/ca.crt': options.caCert }),
    },
  };
}

function dockerfile(options: RecipeOptions): string {
  const requirement = options.version === undefined ? options.name : `${options.name}==${options.version}`;
  const trustCa =
    options.caCert === undefined ? [] : ['ENV SSL_CERT_FILE=/skep/ca.crt PIP_CERT=/skep/ca.crt'];
  const index =
    options.registry === undefined
      ? []
      : [`ENV PIP_INDEX_URL=${options.registry} UV_DEFAULT_INDEX=${options.registry}`];
  const lines = [
    stageHead(`${options.baseImage} AS builder`, options.buildId),
    'COPY skep /skep',
    ...installPackages(DEFAULT_PACKAGES, options.addPackages),
    ...trustCa,
    ...index,
    'ENV UV_TOOL_DIR=/opt/uv-tools UV_TOOL_BIN_DIR=/opt/uv-tools/bin UV_PYTHON_DOWNLOADS=never UV_NO_PROGRESS=1',
    'RUN ["python3", "-m", "pip", "install", "--no-cache-dir", "--disable-pip-version-check", "uv"]',
    `RUN ${JSON.stringify(['uv', 'tool', 'install', '--no-cache', '--', requirement])}`,
    `RUN ${JSON.stringify(['python3', '/skep/link-entry.py', options.name])}`,
    '',
    stageHead(options.baseImage, options.buildId),
    'COPY skep/packages.sh /skep/packages.sh',
    ...installPackages(DEFAULT_PACKAGES, options.addPackages),
    'COPY --chown=1000:1000 home /home/skep',
    'COPY --from=builder /opt/uv-tools /opt/uv-tools',
    'COPY --from=builder /app/server /app/server',
    'ENV HOME=/home/skep PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1',
    'WORKDIR /app',
    'USER 1000:1000',
    'ENTRYPOINT ["/app/server/run"]',
    'CMD []',
  ];
  return `${lines.join('\n')}\n`;
}

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
