import { defineSettings, valuesOf } from '@skep/core/settings/define-settings.ts';
import { buildInfo } from '../config/build-info.ts';
import { type Command, COMMON_ROWS, FORMAT_ROW } from '../command.ts';

const rows = defineSettings([FORMAT_ROW, ...COMMON_ROWS]);

export const version: Command = {
  usage: 'version [flags]',
  summary: 'Show what is installed',
  rows,
  run: async (host, settings) => {
    const build = buildInfo({ version: host.nodeVersion, platform: host.platform, arch: host.arch });
    const { format } = valuesOf(rows, settings);
    const text = `skep-registry ${build.version} (${build.runtime_version}, ${build.platform})`;
    host.stdout.write(`${format === 'json' ? JSON.stringify(build) : text}\n`);
    return 0;
  },
};
