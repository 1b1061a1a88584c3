import { describe, expect, test } from 'vitest';
import { TraceReader } from './read-trace.ts';

const OPTIONS = {
  program: '/skep/bin/node',
  cwd: '/home/skep',
  whole: ['/data', '/data/inner', '/ro'],
  ignored: ['/usr', '/etc', '/proc', '/skep', '/home/skep'],
};
const START =
  '10 execve("/usr/bin/bwrap", [...], 0x7f /* 0 vars */) = 0\n11 openat(AT_FDCWD</>, "/home/u/early", O_RDONLY) = -1 ENOENT (No such file or directory)\n11 execve("/skep/bin/node", [...], 0x7f /* 9 vars */) = 0\n';

function seen(...lines: readonly string[]): object {
  const reader = new TraceReader(OPTIONS);
  reader.write(START + lines.map((line) => `${line}\n`).join(''));
  return Object.fromEntries(
    [...reader.paths].map(([path, { changes, there }]) => [path, `${changes} ${there}`]),
  );
}

const NONE = '= -1 ENOENT (No such file or directory)';

describe('what strace 6.1 wrote of a server', () => {
  test.each([
    [
      'a look at what is not there',
      `11 openat(AT_FDCWD</>, "/home/u/notes", O_RDONLY|O_CLOEXEC) ${NONE}`,
      { '/home/u/notes': 'false false' },
    ],
    [
      'a directory to be made',
      `11 mkdir("/home/u/notes", 0777)      ${NONE}`,
      { '/home/u/notes': 'true false' },
    ],
    [
      'a file to be made',
      `11 openat(AT_FDCWD</>, "/home/u/n", O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC, 0666) ${NONE}`,
      { '/home/u/n': 'true false' },
    ],
    [
      'a file that was made',
      '11 openat(AT_FDCWD</>, "/tmp/x", O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC, 0666) = 18</tmp/x>',
      { '/tmp/x': 'true true' },
    ],
    [
      'a path of a mount',
      '11 newfstatat(AT_FDCWD</>, "/data/a/b", {st_mode=S_IFREG|0644, st_size=3, ...}, 0) = 0',
      { '/data': 'false true' },
    ],
    [
      'a path of a mount within another',
      '11 access("/data/inner/x", R_OK)   = 0',
      { '/data/inner': 'false true' },
    ],
    [
      'a mount that was written',
      '11 rename("/data/a", "/data/inner/b")        = 0',
      { '/data': 'true true', '/data/inner': 'true true' },
    ],
    [
      'a read-only mount that was to be written',
      '11 openat(AT_FDCWD</>, "/ro/x", O_RDWR|O_CREAT, 0666) = -1 EROFS (Read-only file system)',
      { '/ro': 'true true' },
    ],
    [
      'a directory that is there already',
      '11 mkdir("/ro", 0777) = -1 EEXIST (File exists)',
      { '/ro': 'false true' },
    ],
    ['whether it may write', '11 access("/data", W_OK) = 0', { '/data': 'true true' }],
    [
      'a path below a descriptor',
      '11 openat(19</data/a>, "b", O_RDONLY) = 20</data/a/b>',
      { '/data': 'false true' },
    ],
    [
      'a link, and not where it leads',
      '11 symlink("/home/u/target", "/data/l")        = 0',
      { '/data': 'true true' },
    ],
    [
      'a path through another',
      `11 stat("/usr/../home/u/./x", 0x7ffe) ${NONE}`,
      { '/home/u/x': 'false false' },
    ],
    [
      'letters beyond ASCII',
      `11 stat("/home/u/caf\\303\\251", 0x7ffe) ${NONE}`,
      { '/home/u/café': 'false false' },
    ],
    ['its own places', `11 openat(AT_FDCWD</usr>, "lib/x", O_RDONLY) ${NONE}`, {}],
    [
      'no path of a call, but its answer',
      '11 readlink("/data/l", "/home/u/target", 4095) = 14',
      { '/data': 'false true' },
    ],
    [
      'a socket that was connected to',
      '11 connect(20<socket:[5504196]>, {sa_family=AF_UNIX, sun_path="/data/.s"}, 110) = 0',
      { '/data': 'false true' },
    ],
    [
      'a socket that was made',
      '11 bind(21<socket:[5504194]>, {sa_family=AF_UNIX, sun_path="/tmp/x.sock"}, 110) = 0',
      { '/tmp/x.sock': 'true true' },
    ],
    [
      'a socket that is not there',
      `11 connect(19<socket:[1]>, {sa_family=AF_UNIX, sun_path="/home/u/no\\"such>sock"}, 110) ${NONE}`,
      { '/home/u/no"such>sock': 'false false' },
    ],
    [
      'no socket without a path',
      '11 connect(20<socket:[1]>, {sa_family=AF_UNIX, sun_path=@"/home/u/x"}, 110) = 0',
      {},
    ],
    [
      'no socket of the internet',
      '11 connect(23<socket:[1]>, {sa_family=AF_INET, sin_port=htons(1), sin_addr=inet_addr("127.0.0.1")}, 16) = 0',
      {},
    ],
    ['calls that are none of files', '11 sendto(3, "/home/u/x", 9, 0, NULL, 0) = 9', {}],
    ['the place where it stands', '11 getcwd("/home/u", 4096)           = 8', {}],
  ])('%s', (_what, line, expected) => expect(seen(line)).toEqual(expected));

  test('an answer that comes later belongs to its own program', () => {
    expect(
      seen(
        '12 openat(AT_FDCWD</>, "/home/u/a", O_RDONLY <unfinished ...>',
        '13 openat(AT_FDCWD</>, "/tmp/b", O_RDONLY <unfinished ...>',
        `12 <... openat resumed>)             ${NONE}`,
        '13 <... openat resumed>)             = 3</tmp/b>',
      ),
    ).toEqual({ '/home/u/a': 'false false', '/tmp/b': 'false true' });
  });

  test('what is there once was there, and what was written once is written', () => {
    expect(
      seen(`11 stat("/tmp/x", 0x7f) ${NONE}`, '11 mkdir("/tmp/x", 0777) = 0', '11 stat("/tmp/x", {}) = 0'),
    ).toEqual({ '/tmp/x': 'true true' });
  });
});

describe('what a server may do to mislead', () => {
  test.each([
    [
      'a name with a quote and a call in it',
      `11 stat("/tmp/a\\", O_RDWR) = 0\\n11 mkdir(\\"/home/u/evil", 0x7f) ${NONE}`,
      ['/tmp/a", O_RDWR) = 0\n11 mkdir("/home/u/evil'],
    ],
    [
      'a name that looks like a flag',
      '11 openat(AT_FDCWD</>, "/data/O_WRONLY", O_RDONLY) = 3</data/O_WRONLY>',
      ['/data'],
    ],
    [
      'a name that looks like an answer',
      '11 stat("/home/u/x) = -1 ENOENT (", {st_mode=0}) = 0',
      ['/home/u/x) = -1 ENOENT ('],
    ],
    [
      'a directory with an end in its name',
      `11 openat(3</tmp/a\\76, \\"/home/u>, "x", O_RDONLY) ${NONE}`,
      ['/tmp/a>, "/home/u/x'],
    ],
    ['a path that is cut', `11 stat("/home/u/aaaa"..., 0x7f) ${NONE}`, []],
    ['a path below what is no directory', `11 openat(5<socket:[12]>, "x", O_RDONLY) ${NONE}`, []],
    ['an empty path', '11 newfstatat(1<pipe:[3]>, "", {}, AT_EMPTY_PATH) = 0', []],
  ])('%s', (_what, line, expected) => expect(Object.keys(seen(line))).toEqual(expected));

  test('a name with a flag in it does not make a look a change', () => {
    expect(seen('11 openat(AT_FDCWD</>, "/data/O_WRONLY", O_RDONLY) = 3')).toEqual({ '/data': 'false true' });
  });

  test('a flood of paths is cut off and said, and mounts are seen beside it', () => {
    const reader = new TraceReader(OPTIONS);
    reader.write(START);
    for (let at = 0; at < 5_000; at += 1) reader.write(`11 stat("/home/u/${at}", 0x7f) ${NONE}\n`);
    reader.write('11 unlink("/data/x") = 0\n');
    expect(reader.overflowed).toBe(true);
    expect(reader.paths.size).toBe(2_001);
    expect(reader.paths.get('/data')).toEqual({ changes: true, there: true });
  });

  test('a line without an end takes no memory', () => {
    const reader = new TraceReader(OPTIONS);
    reader.write(START);
    for (let at = 0; at < 40; at += 1) reader.write('x'.repeat(10_000));
    reader.write('\n11 stat("/data", {}) = 0\n');
    expect(reader.overflowed).toBe(true);
    expect(reader.paths.has('/data')).toBe(true);
  });
});

test('a trace is the same however it is cut into parts', () => {
  const text = `${START}11 stat("/home/u/x", 0x7f) ${NONE}\n12 mkdir("/data/y", 0777) = 0\n11 +++ exited with 0 +++\n`;
  const whole = new TraceReader(OPTIONS);
  whole.write(text);
  for (let size = 1; size < 40; size += 1) {
    const cut = new TraceReader(OPTIONS);
    for (let at = 0; at < text.length; at += size) cut.write(text.slice(at, at + size));
    expect([...cut.paths]).toEqual([...whole.paths]);
    expect(cut.ended).toBe(true);
  }
});

test.each([
  ['11 +++ exited with 0 +++', true],
  ['11 +++ killed by SIGKILL +++', true],
  ['12 +++ exited with 0 +++', false],
])('after "%s" the server has ended: %s', (line, ended) => {
  const reader = new TraceReader(OPTIONS);
  reader.write(`${START}${line}\n`);
  expect(reader.ended).toBe(ended);
});
