import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Person } from '@skep/auth/sign-in/port.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { Context } from './context.ts';

/** What is needed to reach whoever runs a command. */
export type AtTerminal = Pick<Context, 'env' | 'platform'> & {
  readonly terminal: Pick<Context['terminal'], 'err'>;
};

interface Opener {
  readonly program: string;
  readonly args: readonly string[];
}

/**
 * The person who runs a command, as signing in needs one: addresses and codes are printed on stderr, and a browser is
 * opened where there is one, unless `skipBrowser` says otherwise.
 */
export function personAt(
  { terminal, env, platform }: AtTerminal,
  { skipBrowser }: { readonly skipBrowser: boolean },
): Person {
  const opener = skipBrowser ? undefined : openerOf({ env, platform });
  return {
    show(address) {
      const how =
        opener === undefined
          ? 'To sign in, open this address:'
          : 'To sign in, use the browser that opens, or open this address:';
      terminal.err(`${how}\n  ${printable(address)}\n`);
    },
    ...(opener && { open: (address: string) => openBrowser(opener, address, env) }),
    showCode(address, code, whole) {
      terminal.err(
        `To sign in, open this address on any machine:\n  ${printable(address)}\nand type the code:\n  ${printable(code)}\n`,
      );
      if (whole !== undefined)
        terminal.err(`or open this one, which holds the code:\n  ${printable(whole)}\n`);
    },
  };
}

/** True where a browser can be opened that the person sees. */
export function hasBrowser(around: Pick<AtTerminal, 'env' | 'platform'>): boolean {
  return openerOf(around) !== undefined;
}

function openerOf({ env, platform }: Pick<AtTerminal, 'env' | 'platform'>): Opener | undefined {
  const own = env['BROWSER'] ?? '';
  if (own !== '') return { program: own, args: [] };
  if (platform === 'darwin') return { program: 'open', args: [] };
  if (platform === 'win32') return { program: 'rundll32', args: ['url.dll,FileProtocolHandler'] };
  const hasScreen = (env['DISPLAY'] ?? '') !== '' || (env['WAYLAND_DISPLAY'] ?? '') !== '';
  return hasScreen ? { program: 'xdg-open', args: [] } : undefined;
}

/** Resolves when the browser was started; what becomes of it is the person's. */
async function openBrowser(
  { program, args }: Opener,
  address: string,
  env: AtTerminal['env'],
): Promise<void> {
  // A server wrote it, and other schemes mean other programs.
  const { protocol, href } = new URL(address);
  if (protocol !== 'https:' && protocol !== 'http:') return;
  const browser = spawn(program, [...args, href], { env, stdio: 'ignore', detached: true });
  await once(browser, 'spawn');
  browser.on('error', () => {});
  browser.unref();
}
