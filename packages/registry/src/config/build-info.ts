import manifest from '../../package.json' with { type: 'json' };

// Put in by the bundler; running from source there is neither.
declare const SKEP_COMMIT: string | undefined;
declare const SKEP_BUILD_DATE: string | undefined;

/** What `version` prints and `GET /version` answers. `go_version` is what clients of other servers look for. */
export interface BuildInfo {
  readonly version: string;
  readonly commit: string;
  readonly build_date: string;
  readonly runtime_version: string;
  readonly go_version: string;
  readonly platform: string;
}

export interface Runtime {
  /** As in process.version. */
  readonly version: string;
  readonly platform: string;
  readonly arch: string;
}

export function buildInfo(runtime: Runtime): BuildInfo {
  const running = `node ${runtime.version}`;
  return {
    version: manifest.version,
    commit: typeof SKEP_COMMIT === 'string' ? SKEP_COMMIT : 'unknown',
    build_date: typeof SKEP_BUILD_DATE === 'string' ? SKEP_BUILD_DATE : 'unknown',
    runtime_version: running,
    go_version: running,
    platform: `${runtime.platform}/${runtime.arch}`,
  };
}
