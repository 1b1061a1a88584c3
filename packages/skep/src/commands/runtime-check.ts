import { SkepError } from '@skep/core/errors/skep-error.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import { RUNTIME_CHECK } from '../doctor/checks.ts';
import { examine } from '../doctor/examine.ts';

export const runtimeCheck = defineCommand({
  usage: 'skep runtime check [flags]',
  summary: 'Ask what servers run on whether it answers',
  examples: [{ command: 'skep runtime check --timeout 5', what: 'Wait five seconds at most' }],
  settings: [
    ...settingsOf({ group: 'Selection' }, [
      flag('int', 'timeout', 'Seconds to wait for an answer', {
        placeholder: 'seconds',
        default: 30,
        min: 1,
        max: 3600,
      }),
    ]),
    ...commonSettings,
  ],
  async run({ values }, context) {
    const [found] = await examine([RUNTIME_CHECK], context, { timeoutMs: values.timeout * 1000, fix: false });
    if (found?.verdict === 'ok')
      return context.terminal.out(`Container runtime is responsive: ${found.text}\n`);
    throw new SkepError('runtime/unavailable', {
      message: found?.text,
      ...(found?.remedy === undefined ? {} : { hint: found.remedy }),
    });
  },
});
