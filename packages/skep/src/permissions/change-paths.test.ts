import { describe, expect, test } from 'vitest';
import { denyPath, permitPath, type Mounted, type PathRight } from './change-paths.ts';
import { parseRight } from './right.ts';

const mounted = (
  read: readonly string[],
  write: readonly string[],
  more: Partial<Mounted> = {},
): Mounted => ({
  name: 'a1',
  permission_profile: { read, write },
  volumes: [],
  ...more,
});
const right = (text: string): PathRight => parseRight(text, '/') as PathRight;

describe('permitting a path', () => {
  test.each<[Mounted, string, object]>([
    [mounted([], []), '/srv', { read: ['/srv:/srv'], write: [] }],
    [mounted([], []), '/srv:rw', { read: [], write: ['/srv:/srv'] }],
    [mounted(['/srv:/in'], []), '/srv:rw', { read: [], write: ['/srv:/in'] }],
    [mounted([], ['/srv:/in']), '/srv:ro', { read: ['/srv:/in'], write: [] }],
    [mounted([], ['volume://c:/c']), '/srv', { read: ['/srv:/srv'], write: ['volume://c:/c'] }],
    [mounted(['/a:/b'], []), '/srv', { read: ['/a:/b', '/srv:/srv'], write: [] }],
  ])('of %j: %s', (config, text, profile) => {
    const changed = permitPath(config, right(text)).config;
    expect(changed.permission_profile).toEqual(profile);
    expect(permitPath(changed, right(text)).config).toBe(changed);
  });

  test.each<[Mounted, string, string]>([
    [mounted(['/srv:/in'], []), '/srv', 'a1 may read /srv already'],
    [mounted([], ['/srv']), '/srv', 'a1 may write /srv already'],
    [mounted(['/srv'], []), '/srv/a/b', 'a1 may read /srv/a/b already'],
  ])('of %j is nothing new for %s', (config, text, note) => {
    const changed = permitPath(config, right(text));
    expect(changed.config).toBe(config);
    expect(changed.notes).toEqual([note]);
  });

  test.each<[Mounted, string, string]>([
    [mounted(['/other:/srv'], []), '/srv', 'a1 has /other at /srv already'],
    [mounted([], ['volume://c:/c']), '/c', 'a1 has volume://c at /c already'],
    [mounted([], [], { data_paths: ['/data'] }), '/data', 'a1 keeps its data in /data already'],
    [mounted([], [], { data_paths: ['/data'] }), '/data/x', 'a1 keeps its data in /data already'],
  ])('of %j is refused for %s', (config, text, why) => {
    expect(() => permitPath(config, right(text))).toThrow(why);
  });
});

describe('denying a path', () => {
  test.each<[Mounted, string, object]>([
    [mounted(['/srv', '/a'], []), '/srv', { read: ['/a:/a'], write: [] }],
    [mounted([], ['/srv:/in']), '/in', { read: [], write: [] }],
    [mounted(['volume://c:/c'], ['/a']), '/c', { read: [], write: ['/a:/a'] }],
    [mounted(['volume://c:/c'], ['/a']), '/a', { read: ['volume://c:/c'], write: [] }],
  ])('of %j: %s', (config, text, profile) => {
    const changed = denyPath(config, right(text)).config;
    expect(changed.permission_profile).toEqual(profile);
    expect(denyPath(changed, right(text)).config).toBe(changed);
  });

  test('that is a part of what is seen is refused, rather than promised', () => {
    expect(() => denyPath(mounted(['/srv'], []), right('/srv/a'))).toThrow('sees /srv/a as a part of /srv');
  });

  test('takes its volume and where it leads to along', () => {
    const config = mounted(['/a', '/b'], [], {
      volumes: ['/a:/a:ro', '/b:/b:ro'],
      mount_sources: { '/a': '/real/a', '/b': '/b' },
    });
    expect(denyPath(config, right('/a')).config).toMatchObject({
      volumes: ['/b:/b:ro'],
      mount_sources: { '/b': '/b' },
    });
  });
});
