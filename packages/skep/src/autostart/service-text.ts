import { createHash } from 'node:crypto';
import { SkepError } from '@skep/core/errors/skep-error.ts';

/** What is started when the machine is up, and with which environment. */
export interface Service {
  /** Absolute path of the program, then its arguments. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** The text of a file for what starts services, of one kind of system. */
export type Writer = (service: Service) => string;

/**
 * A user unit of systemd.unit(5). The program is started through a shell, since systemd takes no path with quotes or
 * backslashes for a program; what a shell is handed as arguments it does not read. Servers outlive their supervisor
 * (`KillMode`), and one that was asked to end is not started again.
 */
export const systemdUnit: Writer = ({ command, env }) =>
  signed(
    (text) => `# ${text}`,
    [
      '# Skep starts with this service.',
      '[Unit]',
      'Description=Skep: MCP servers that ran when this machine went down',
      'Documentation=man:systemd.service(5)',
      '',
      '[Service]',
      'Type=simple',
      'WorkingDirectory=/',
      '# Where programs, the state of Skep and its container engine are; nothing else of a shell is known at boot.',
      ...Object.entries(env).map(([name, value]) => `Environment=${unitWord(`${name}=${value}`)}`),
      `ExecStart=/bin/sh -c ${['exec "$0" "$@"', ...command].map((word) => unitWord(word, '$$')).join(' ')}`,
      'Restart=on-failure',
      'RestartSec=2',
      'SuccessExitStatus=129 130 143',
      'KillMode=process',
      '',
      '[Install]',
      'WantedBy=default.target',
      '',
    ],
  );

/**
 * One word of a setting, quoted as in systemd.syntax(7), with `%` that begins no specifier. In a command line a dollar
 * sign has to be doubled too (systemd.service(5)).
 */
function unitWord(text: string, dollar = '$'): string {
  checkCharacters(text);
  const escaped = text.replaceAll(/["\\\n\t%$]/g, (one) => ESCAPES[one] ?? dollar);
  return `"${escaped}"`;
}

const ESCAPES: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\n': '\\n',
  '\t': '\\t',
  '%': '%%',
};

/** A property list of launchd.plist(5). */
export const launchdPlist: Writer = ({ command, env }) =>
  signed(
    (text) => `<!-- ${text} -->`,
    [
      '<?xml version="1.0" encoding="UTF-8"?>',
      '<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">',
      '<plist version="1.0">',
      '<dict>',
      '  <key>Label</key>',
      `  <string>${LAUNCHD_LABEL}</string>`,
      '  <key>ProgramArguments</key>',
      '  <array>',
      ...command.map((word) => `    <string>${xmlText(word)}</string>`),
      '  </array>',
      '  <key>EnvironmentVariables</key>',
      '  <dict>',
      ...Object.entries(env).flatMap(([name, value]) => [
        `    <key>${xmlText(name)}</key>`,
        `    <string>${xmlText(value)}</string>`,
      ]),
      '  </dict>',
      '  <key>WorkingDirectory</key>',
      '  <string>/</string>',
      '  <key>RunAtLoad</key>',
      '  <true/>',
      '  <key>KeepAlive</key>',
      '  <dict>',
      '    <key>SuccessfulExit</key>',
      '    <false/>',
      '  </dict>',
      '  <!-- Servers outlive their supervisor. -->',
      '  <key>AbandonProcessGroup</key>',
      '  <true/>',
      '</dict>',
      '</plist>',
      '',
    ],
  );

export const LAUNCHD_LABEL = 'dev.skep.supervisor';

function xmlText(text: string): string {
  checkCharacters(text);
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** Neither XML 1.0 nor systemd has a way to write other control characters. */
function checkCharacters(text: string): void {
  if (!/[\p{Cc}\p{Cs}]/u.test(text.replaceAll(/[\n\t]/g, ''))) return;
  throw new SkepError('autostart/unavailable', {
    message: `a path or variable with control characters cannot be written down: ${JSON.stringify(text)}`,
    hint: 'install Skep, and keep its files, where names are ordinary',
  });
}

const SIGNED = 'Written by skep autostart, which removes it only as it is; digest of the rest:';

/** The text with a digest of itself, so that it is known again, and known to be unchanged. */
function signed(comment: (text: string) => string, lines: readonly string[]): string {
  const [first = '', ...rest] = lines;
  return [first, comment(`${SIGNED} ${digestOf(lines)}`), ...rest].join('\n');
}

/** True for what one of the writers above wrote and nobody has changed. */
export function isUnchanged(text: string): boolean {
  const [first = '', comment = '', ...rest] = text.split('\n');
  return comment.includes(`${SIGNED} ${digestOf([first, ...rest])}`);
}

function digestOf(lines: readonly string[]): string {
  return createHash('sha256').update(lines.join('\n')).digest('hex');
}
