import { expect, test } from 'vitest';
import { proxyEnv } from './proxy-env.ts';

test('programs are led to the gateway by both spellings of the variables, and Node is told to heed them', () => {
  expect(proxyEnv({ host: '10.1.2.3', port: 3128 })).toEqual({
    HTTP_PROXY: 'http://10.1.2.3:3128',
    HTTPS_PROXY: 'http://10.1.2.3:3128',
    http_proxy: 'http://10.1.2.3:3128',
    https_proxy: 'http://10.1.2.3:3128',
    NO_PROXY: 'localhost,127.0.0.1,::1',
    no_proxy: 'localhost,127.0.0.1,::1',
    NODE_USE_ENV_PROXY: '1',
  });
});
