import { expect, test } from 'vitest';
import { localIdentity } from './identity.ts';

test.each([
  ['ann', 'ann', 'Local User: ann', 'ann@localhost'],
  [undefined, 'anonymous', 'Anonymous', 'anonymous@localhost'],
])('where nobody signs in, %s is %s for a day', (osUser, sub, name, email) => {
  const claims = { iss: 'skep-local', aud: 'skep', sub, name, email, iat: 7, nbf: 7, exp: 86_407 };
  expect(localIdentity(osUser, 7_999)).toEqual({
    issuer: 'skep-local',
    subject: sub,
    name,
    email,
    groups: [],
    claims,
  });
});
