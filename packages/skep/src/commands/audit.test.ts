import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { commandUnderTest, NOTHING_LEFT, type CommandLine } from '../command-under-test.fixture.ts';

const RUN = 'run fake:1 --name a1 --transport stdio';
const IMPORTED = { name: 'a1', image: 'fake:1', transport: 'stdio' };
const FILES = {
  'audit.json': { enabled: true, includeRequestData: true, logFile: 'calls.log' },
  'audit.yaml': 'eventTypes: [mcp_tool_call]\nmaxDataSize: 2048\n',
  'typo.json': '{\n  "eventTypes": ["mcp_tool_cal"]\n}',
  'not.yaml': 'a: [',
  'key.yaml': 'logfile: x\n',
  'far.json': { logFile: 'nowhere/calls.log' },
  'here.json': { logFile: '.' },
  'path.json': { ...IMPORTED, audit_config_path: 'audit.yaml' },
  'gone.json': { ...IMPORTED, audit_config_path: 'gone' },
  'log.json': { ...IMPORTED, audit_config: { logFile: 'calls.log' } },
  'bad.json': { ...IMPORTED, audit_config: { maxDataSize: -1 } },
  'empty.json': { ...IMPORTED, audit_config: {} },
};

const member = async (file: string, key: string): Promise<unknown> =>
  (JSON.parse(await readFile(file, 'utf8')) as Readonly<Record<string, unknown>>)[key];

describe('a run that is to be audited', () => {
  test.each<[string, CommandLine, string]>([
    ['no file', `${RUN} --audit-config gone`, 'gone'],
    ['an empty file name', `${RUN} --audit-config=`, '--audit-config is empty'],
    ['an unknown type', `${RUN} --audit-config typo.json`, 'audit configuration "WORK/typo.json": line 2: "eventTypes.0" unknown event type "mcp_tool_cal"; did you mean "mcp_tool_call"?'],
    ['what is neither JSON nor YAML', `${RUN} --audit-config not.yaml`, 'not.yaml": line 1: neither JSON nor YAML'],
    ['an unknown key', `${RUN} --audit-config key.yaml`, 'has an unknown key: "logfile"'],
    ['a log in no directory', `${RUN} --audit-config far.json`, 'cannot open the audit log "WORK/nowhere/calls.log": ENOENT'],
    ['a directory for a log', `${RUN} --audit-config here.json`, 'cannot open the audit log "WORK": it is a directory'],
    ['the path of a file that is gone, in a file', 'run --from-config gone.json', 'gone'],
    ['a wrong size, in a file', 'run --from-config bad.json', '"audit_config.maxDataSize": must be a whole number from 0 to 65536'],
  ])('is refused with %s, and nothing is made', async (_name, line, message) => {
    const skep = await commandUnderTest({ files: FILES });
    expect((await skep.refusal(line)).replaceAll(skep.cwd, 'WORK')).toContain(message);
    expect(await skep.left()).toEqual(NOTHING_LEFT);
  }); // prettier-ignore

  test.each<[string, string, object | undefined]>([
    ['nothing', RUN, undefined],
    ['--enable-audit', `${RUN} --enable-audit`, {}],
    ['--enable-audit=false', `${RUN} --enable-audit=false`, undefined],
    [
      'a file of YAML',
      `${RUN} --audit-config audit.yaml`,
      { eventTypes: ['mcp_tool_call'], maxDataSize: 2048 },
    ],
    ['a file beside the flag', `${RUN} --enable-audit --audit-config audit.yaml`, { maxDataSize: 2048 }],
    ['an imported file', 'run --from-config empty.json', {}],
    ['an imported file that names one', 'run --from-config path.json', { maxDataSize: 2048 }],
  ])('keeps with its workload what it says: %s', async (_name, line, expected) => {
    const skep = await commandUnderTest({ files: FILES });
    await skep.output(line);
    const kept = await member(join(skep.places.runConfigsDir, 'a1.json'), 'audit_config');
    if (expected === undefined) expect(kept).toBeUndefined();
    else expect(kept).toMatchObject(expected);
  });

  test('goes on with what the file said, and takes it along when it is exported', async () => {
    const skep = await commandUnderTest({ files: FILES });
    await skep.output(`${RUN} --audit-config audit.json`);
    const log = join(skep.cwd, 'calls.log');
    const audit = { enabled: true, includeRequestData: true, logFile: log };
    await writeFile(join(skep.cwd, 'audit.json'), 'x');
    await skep.output('stop a1');
    await skep.output('start a1');
    await skep.output('export a1 out.json');
    const out = join(skep.cwd, 'out.json');
    expect(await member(out, 'audit_config')).toEqual(audit);
    expect(await member(out, 'audit_config_path')).toBeUndefined();
    await skep.output('rm a1');
    expect(await skep.refusal('run --from-config out.json')).toContain(
      'append what is audited to "WORK/calls.log"',
    );
    await skep.output('run --from-config out.json --trust-config');
    expect(await member(join(skep.places.runConfigsDir, 'a1.json'), 'audit_config')).toEqual(audit);
  });

  test('of a file of others may not have it written anywhere', async () => {
    const skep = await commandUnderTest({ files: FILES });
    expect(await skep.refusal('run --from-config log.json')).toContain(
      'append what is audited to "WORK/calls.log"',
    );
    expect(await skep.left()).toEqual(NOTHING_LEFT);
  });
});
