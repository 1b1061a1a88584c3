import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { commandUnderTest, NOTHING_LEFT } from '../command-under-test.fixture.ts';

const PLAIN = 'run fake:1 --name a1 --transport streamable-http --target-port 8080';
const RUN = `${PLAIN} --session-redis rediss://r.example:6380/3`;
const stored = (more: object): object => ({
  name: 'a1',
  image: 'fake:1',
  transport: 'streamable-http',
  target_port: 8080,
  ...more,
});
const FILES = {
  hush: 'quiet-please\n',
  'ca.pem': rootCertificates[0] ?? '',
  'no.pem': 'nothing',
  'a.json': stored({
    scaling_config: { session_redis: { address: 'rediss://r.example:6380', db: 3, password_file: 'hush' } },
    skep_ca_bundle: 'ca.pem',
  }),
  'stdio.json': {
    ...stored({ scaling_config: { session_redis: { address: 'r.example:6380' } } }),
    transport: 'stdio',
  },
  'secret.json': stored({
    scaling_config: { session_redis: { address: 'redis://:quiet-please@r.example' } },
  }),
};

describe('sessions in Redis', () => {
  test.each([
    [`${PLAIN} --session-redis-password-file hush`, '--session-redis-password-file is for --session-redis'],
    [`${PLAIN} --session-redis redis://:quiet-please@r.example`, 'without a password'],
    [`${RUN} --session-redis-password-file nowhere`, 'nowhere'],
    [`${RUN} --skep-ca-bundle no.pem`, 'holds no certificate'],
    [RUN.replace('streamable-http', 'stdio'), 'this one speaks stdio'],
    [RUN.replace('streamable-http', 'sse'), 'this one speaks sse'],
    ['run --from-config secret.json', 'without a password'],
    ['run --from-config stdio.json', 'this one speaks stdio'],
  ])('are refused as %s, and nothing is made', async (line, message) => {
    const skep = await commandUnderTest({ files: FILES });
    const said = await skep.refusal(line);
    expect(said).toContain(message);
    expect(said).not.toContain('quiet-please');
    expect(await skep.left()).toEqual(NOTHING_LEFT);
  });

  test.each([
    ['flags', `${RUN} --session-redis-password-file hush --skep-ca-bundle ca.pem`],
    ['a file', 'run --from-config a.json --trust-config'],
  ])('are saved with the authorities of Redis and without its password, by %s', async (_how, line) => {
    const skep = await commandUnderTest({ files: FILES });
    const { status, err } = await skep.run(line);
    expect(status, err).toBe(0);
    expect(err).not.toContain('has no effect');
    const text = await readFile(join(skep.places.runConfigsDir, 'a1.json'), 'utf8');
    expect(text).not.toContain('quiet-please');
    expect(JSON.parse(text)).toMatchObject({
      scaling_config: {
        session_redis: { address: 'rediss://r.example:6380', db: 3, password_file: join(skep.cwd, 'hush') },
      },
      skep_ca_bundle: join(skep.cwd, 'ca.pem'),
    });
  });

  test('come out of an export as they went in', async () => {
    const skep = await commandUnderTest({ files: FILES });
    await skep.output(
      `${RUN} --session-redis-password-file hush --session-redis-key-prefix mine: --skep-ca-bundle ca.pem`,
    );
    await skep.output('export a1 out.json');
    const saved = async (): Promise<object> => {
      const { scaling_config, skep_ca_bundle } = JSON.parse(
        await readFile(join(skep.places.runConfigsDir, 'a1.json'), 'utf8'),
      );
      return { scaling_config, skep_ca_bundle };
    };
    const before = await saved();
    expect(JSON.parse(await readFile(join(skep.cwd, 'out.json'), 'utf8'))).toMatchObject(before);
    await skep.output('rm a1');
    await skep.output('run --from-config out.json --trust-config');
    expect(await saved()).toEqual(before);
  });
});
