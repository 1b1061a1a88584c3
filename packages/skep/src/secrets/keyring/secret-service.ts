import { SkepError } from '@skep/core/errors/skep-error.ts';
import { openBus, type Bus } from './dbus.ts';
import { textOf, type Value, type Variant } from './dbus-wire.ts';
import type { Keyring } from './keyring.ts';

const NAME = 'org.freedesktop.secrets';
const ROOT = '/org/freedesktop/secrets';
const INTERFACES = 'org.freedesktop.Secret';
/** Stands for no object, and for no prompt. */
const NOTHING = '/';
/** All of one exchange; a keyring that has to be started for it takes a second. */
const WAIT_MS = 10_000;

/** The keyring of GNOME, KDE, KeePassXC and others, by the freedesktop.org Secret Service specification 0.2. */
export class SecretService implements Keyring {
  readonly name = 'the Secret Service';
  readonly lasts = true;
  readonly maxChars = 256 * 1024;
  readonly #address: string;
  readonly #uid: number;

  constructor(address: string, uid: number) {
    this.#address = address;
    this.#uid = uid;
  }

  async get(account: string): Promise<string | undefined> {
    using bus = await this.#open();
    const item = await unlockedItem(bus, account);
    if (item === undefined) return undefined;
    const session = await openSession(bus);
    const [secrets] = await callService(bus, ROOT, 'Service.GetSecrets', 'aoo', [[item], session]);
    const [, secret] = (secrets as readonly (readonly Value[])[])[0] ?? [];
    const bytes = (secret as readonly Value[] | undefined)?.[2];
    return bytes instanceof Uint8Array ? Buffer.from(bytes).toString('utf8') : undefined;
  }

  async set(account: string, text: string): Promise<void> {
    using bus = await this.#open();
    const session = await openSession(bus);
    const [answer] = await callService(bus, ROOT, 'Service.ReadAlias', 's', ['default']);
    const alias = textOf(answer);
    if (alias === NOTHING) {
      throw new SkepError('secrets/keyring', { message: 'the Secret Service has no default keyring' });
    }
    await unlock(bus, alias);
    const properties: Value = [
      [`${INTERFACES}.Item.Label`, { signature: 's', value: 'Skep' }],
      [`${INTERFACES}.Item.Attributes`, { signature: 'a{ss}', value: attributesOf(account) }],
    ];
    const secret: Value = [session, Buffer.alloc(0), Buffer.from(text, 'utf8'), 'text/plain'];
    const [, prompt] = await callService(bus, alias, 'Collection.CreateItem', 'a{sv}(oayays)b', [
      properties,
      secret,
      true,
    ]);
    refusePrompt(prompt);
  }

  async delete(account: string): Promise<void> {
    using bus = await this.#open();
    const item = await unlockedItem(bus, account);
    if (item === undefined) return;
    const [prompt] = await callService(bus, item, 'Item.Delete', '', []);
    refusePrompt(prompt);
  }

  #open(): Promise<Bus> {
    return openBus(this.#address, this.#uid, WAIT_MS);
  }
}

const attributesOf = (account: string): Value => [
  ['service', 'skep'],
  ['user', account],
];

/** The messages stay on this machine, between processes of one user, so they are not encrypted once more. */
async function openSession(bus: Bus): Promise<Value> {
  const none: Variant = { signature: 's', value: '' };
  const [, session] = await callService(bus, ROOT, 'Service.OpenSession', 'sv', ['plain', none]);
  return session ?? NOTHING;
}

async function unlockedItem(bus: Bus, account: string): Promise<string | undefined> {
  const found = await callService(bus, ROOT, 'Service.SearchItems', 'a{ss}', [attributesOf(account)]);
  const [unlocked, locked] = found as readonly (readonly string[])[];
  if (unlocked?.[0] !== undefined) return unlocked[0];
  if (locked?.[0] === undefined) return undefined;
  await unlock(bus, locked[0]);
  return locked[0];
}

async function unlock(bus: Bus, object: string): Promise<void> {
  const [, prompt] = await callService(bus, ROOT, 'Service.Unlock', 'ao', [[object]]);
  refusePrompt(prompt);
}

/** A dialogue would open on a screen that nobody may look at, and be waited for. */
function refusePrompt(prompt: Value | undefined): void {
  if (prompt === NOTHING) return;
  throw new SkepError('secrets/keyring', { message: 'the keyring of the Secret Service is locked' });
}

async function callService(
  bus: Bus,
  path: string,
  method: `${string}.${string}`,
  ...[signature, values]: readonly [string, readonly Value[]]
): Promise<readonly Value[]> {
  const [part = '', member = ''] = method.split('.');
  const to = { destination: NAME, path, interface: `${INTERFACES}.${part}`, member };
  try {
    return await bus.call({ ...to, signature, values });
  } catch (error) {
    if (!(error instanceof SkepError)) throw error;
    const name = JSON.stringify(error.detail['name'] ?? '');
    if (/ServiceUnknown|NameHasNoOwner|Spawn/.test(name)) {
      throw new SkepError('secrets/keyring', {
        message: 'no Secret Service runs in this session',
        cause: error,
      });
    }
    if (!name.endsWith('IsLocked"')) throw error;
    throw new SkepError('secrets/keyring', {
      message: 'the keyring of the Secret Service is locked',
      cause: error,
    });
  }
}
