import { defineSettings } from '@skep/core/settings/define-settings.ts';
import { buildInfo } from '../config/build-info.ts';
import { commonSettings, defineCommand, formatSettings } from './command.ts';

const rows = defineSettings([...formatSettings, ...commonSettings]);

export const version = defineCommand({
  usage: 'skep-registry version [flags]',
  summary: 'Show what is installed',
  settings: rows,
  async run({ values: { format } }, host) {
    const build = buildInfo(host);
    const text = `skep-registry ${build.version} (${build.runtime_version}, ${build.platform})`;
    host.terminal.out(`${format === 'json' ? JSON.stringify(build) : text}\n`);
  },
});
