import { describe, expect, test } from 'vitest';
import { adminUnderTest, CONFIG_SOURCES } from '../admin.fixture.ts';

describe('unlabelled sources where they are closed', () => {
  test('are hidden from all but super-admins', async () => {
    const strict = await adminUnderTest({ switches: { unlabeled: 'deny' } });
    const listed = (await strict.send('GET', '/v1/sources', { as: 'admin' })).json();
    expect(listed.sources.map(({ name }) => name)).toEqual(['catalog']);
    expect((await strict.send('GET', '/v1/sources/internal', { as: 'admin' })).statusCode).toBe(404);
    expect((await strict.send('GET', '/v1/sources')).json().sources).toHaveLength(CONFIG_SOURCES.length);
    await strict.close();
  });
});
