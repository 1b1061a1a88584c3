import { type Authority, showAuthority } from './host-name.ts';

/**
 * The variables that lead programs to the gateway; they win over what the person set. Node's own fetch uses them from
 * `NODE_USE_ENV_PROXY` on. There is no `ALL_PROXY`: that would send other protocols to a proxy for HTTP.
 */
export function proxyEnv(proxy: Authority): Readonly<Record<string, string>> {
  const url = `http://${showAuthority(proxy)}`;
  const local = 'localhost,127.0.0.1,::1';
  return {
    HTTP_PROXY: url,
    HTTPS_PROXY: url,
    http_proxy: url,
    https_proxy: url,
    NO_PROXY: local,
    no_proxy: local,
    NODE_USE_ENV_PROXY: '1',
  };
}
