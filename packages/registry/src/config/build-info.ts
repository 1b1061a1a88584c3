import manifest from '../../package.json' with { type: 'json' };

// Put in by the bundler; running from source there is neither.
declare const SKEP_COMMIT: string | undefined;
declare const SKEP_BUILD_DATE: string | undefined;

export type BuildInfo = ReturnType<typeof buildInfo>;

/** What `version` prints and `GET /version` answers. `go_version` is what clients of other servers look for. */
export function buildInfo({
  nodeVersion,
  platform,
  arch,
}: Readonly<Record<'nodeVersion' | 'platform' | 'arch', string>>) {
  const running = `node ${nodeVersion}`;
  return {
    version: manifest.version,
    commit: typeof SKEP_COMMIT === 'string' ? SKEP_COMMIT : 'unknown',
    build_date: typeof SKEP_BUILD_DATE === 'string' ? SKEP_BUILD_DATE : 'unknown',
    runtime_version: running,
    go_version: running,
    platform: `${platform}/${arch}`,
  } as const;
}
