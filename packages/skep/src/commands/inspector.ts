import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { readClientToken, tokenSettings } from '../cli/client-token.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import { placeOfServer } from './place-of-server.ts';
import { runInspector } from './run-inspector.ts';

export const inspector = defineCommand({
  usage: 'skep inspector [flags] SERVER|URL',
  summary: 'Open the official MCP Inspector on a running server',
  description: [
    'It is run by the npx of this machine, which fetches it the first time, and is the client of the server that it is opened on. Ctrl-C ends it.',
  ],
  examples: [
    { command: 'skep inspector time', what: 'In the browser' },
    { command: 'skep inspector time --no-open', what: 'Only says where it is' },
  ],
  positionals: [{ name: 'SERVER|URL', required: true }],
  settings: [
    ...settingsOf({ group: 'Browser' }, [
      flag('bool', 'no-open', 'Print the address, and open no browser', { default: false }),
    ]),
    ...tokenSettings,
    ...commonSettings,
  ],
  async run({ values, positionals: [target = ''] }, context) {
    const token = await readClientToken(values.tokenFile, context);
    const { url, kind } = await placeOfServer(target, token, context);
    await runInspector({ name: target, url, kind, token, opens: !values.noOpen }, context);
  },
});
