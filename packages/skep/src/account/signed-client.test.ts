import { describe, expect, test } from 'vitest';
import { createClient } from '@skep/core/fetch/client.ts';
import { signedClient } from './signed-client.ts';

describe('a client that says who asks', () => {
  test('waits no longer for a token than for an answer', async () => {
    const client = createClient({ timeoutMs: 1000, maxBytes: 10, allowPrivate: true, userAgent: 'test' });
    const never = new Promise<never>(() => undefined);
    const signed = signedClient(client, 'http://127.0.0.1:1', {
      proof: 'sign-in',
      token: async () => never,
      refused: async () => undefined,
      close: () => undefined,
    });
    const signal = AbortSignal.timeout(1);
    await expect(signed.getJson('http://127.0.0.1:1/x', { signal })).rejects.toMatchObject({
      name: 'TimeoutError',
    });
    await signed.close();
  });
});
