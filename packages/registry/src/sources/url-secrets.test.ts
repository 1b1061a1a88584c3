import { expect, test } from 'vitest';
import { withoutUrlSecrets } from './url-secrets.ts';

test.each([
  [{ endpoint: 'https://ann:hunter2@r.test/v' }, { endpoint: 'https://r.test/v' }],
  [
    { url: 'https://f.test/c.json?rev=7&token=hunter2&sig=x' },
    { url: 'https://f.test/c.json?rev=7&token=[redacted]&sig=[redacted]' },
  ],
  [
    { repository: 'https://tok@g.test/r.git', branch: 'b' },
    { repository: 'https://g.test/r.git', branch: 'b' },
  ],
])('%j is stored without its secrets', (config, stored) => {
  expect(JSON.parse(withoutUrlSecrets(JSON.stringify(config)))).toEqual(stored);
});

test.each([
  '{"repository":"git@g.test:r.git"}',
  '{"repository":"ssh://git@g.test/r.git"}',
  '{"data":"https://a:b@c.test"}',
  '{"endpoint":"https://r.test"}',
  '{}',
])('%s has none, and stays as it is', (config) => {
  expect(withoutUrlSecrets(config)).toBe(config);
});
