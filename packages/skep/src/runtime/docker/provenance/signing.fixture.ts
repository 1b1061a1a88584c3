import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { text } from 'node:stream/consumers';
import { bundleToJSON, type SerializedBundle } from '@sigstore/bundle';
import {
  initializeCA,
  initializeCTLog,
  initializeTLog,
  initializeTSA,
  rekorHandler,
  tsaHandler,
} from '@sigstore/mock';
import { DSSEBundleBuilder, MessageSignatureBundleBuilder, RekorWitness, TSAWitness } from '@sigstore/sign';
import { closeServer, listen } from '@skep/core/fetch/listen.ts';

/** What a statement says beside its subject. */
interface Said {
  readonly predicateType?: string;
  readonly predicate?: unknown;
  /** Who saw it: the public log, or an authority for times. */
  readonly seenBy?: 'log' | 'clock';
}

type CA = Awaited<ReturnType<typeof initializeCA>>;
type Clock = Awaited<ReturnType<typeof initializeTSA>>;

/** Who signs, as the certificate says. */
export interface Who {
  readonly identity: string;
  readonly repository?: string;
  readonly ref?: string;
  readonly runner?: string;
  readonly issuer?: string;
}

const LOG = 'https://rekor.sigstore.dev';
const FULCIO = '1.3.6.1.4.1.57264.1';
const sha256 = (bytes: Buffer): Buffer => createHash('sha256').update(bytes).digest();
const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView<ArrayBuffer>): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);
const newKeys = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });

/** A Sigstore instance of its own: an authority, its logs, and whoever is to sign. */
export class Signing implements AsyncDisposable {
  readonly #authority: CA;
  readonly #server: Server;
  readonly #baseURL: string;
  /** What `trusted_root.json` says. */
  readonly trustedRoot: Readonly<Record<string, unknown>>;

  private constructor(
    authority: CA,
    { clock, ...logs }: { log: Buffer; certificates: Buffer; clock: Clock },
    server: Server,
    port: number,
  ) {
    this.#authority = authority;
    this.#server = server;
    this.#baseURL = `http://127.0.0.1:${port}`;
    this.trustedRoot = {
      mediaType: 'application/vnd.dev.sigstore.trustedroot+json;version=0.1',
      tlogs: [logOf(logs.log, LOG)],
      ctlogs: [logOf(logs.certificates, 'https://ctfe.sigstore.dev')],
      certificateAuthorities: [
        {
          subject: { organization: 'sigstore.mock', commonName: 'sigstore' },
          uri: 'https://fulcio.sigstore.dev',
          ...chainOf(authority.rootCertificate),
        },
      ],
      timestampAuthorities: [
        {
          subject: { organization: 'sigstore.mock', commonName: 'tsa' },
          uri: 'https://timestamp.sigstore.dev',
          ...chainOf(clock.intCertificate, clock.rootCertificate),
        },
      ],
    };
  }

  static async open(): Promise<Signing> {
    const certificates = await initializeCTLog(newKeys());
    const authority = await initializeCA(newKeys(), certificates);
    const log = await initializeTLog(LOG, newKeys());
    const now = new Date(0);
    const clock = await initializeTSA(newKeys(), now);
    const handlers = [rekorHandler(log, { strict: true }), tsaHandler(clock, { strict: true })];
    const server = createServer((request: IncomingMessage, response) => {
      // Whole seconds: of fractions zeros at the end are left out, and who reads them wants three digits.
      now.setTime(Math.floor(Date.now() / 1000) * 1000);
      void text(request)
        .then((body) => handlers.find(({ path }) => path === request.url)?.fn(body))
        .then((said) =>
          response
            .writeHead(said?.statusCode ?? 404, {
              'content-type': said?.contentType ?? 'application/json',
              // A connection that is kept may end just when a slow machine sends the next request over it.
              connection: 'close',
            })
            .end(said?.response),
        );
    });
    const port = await listen(server, '127.0.0.1', 0);
    const parts = { log: log.publicKey, certificates: certificates.publicKey, clock };
    return new Signing(authority, parts, server, port);
  }

  /** A layer and its annotations, as cosign pushes them to the tag `sha256-….sig`. */
  async simple(digest: string, who: Who) {
    const { pem, signer } = await this.#signerFor(who);
    const critical = {
      identity: { 'docker-reference': 'registry.example/x' },
      image: { 'docker-manifest-digest': digest },
      type: 'cosign container image signature',
    };
    const payload = Buffer.from(JSON.stringify({ critical, optional: null }));
    const builder = new MessageSignatureBundleBuilder({ signer, witnesses: [this.#witness('dsse')] });
    const bundle = bundleToJSON(await builder.create({ data: payload }));
    const [entry] = bundle.verificationMaterial.tlogEntries;
    const annotations = {
      'dev.cosignproject.cosign/signature': bundle.messageSignature?.signature ?? '',
      'dev.sigstore.cosign/certificate': pem,
      'dev.sigstore.cosign/bundle': JSON.stringify({
        SignedEntryTimestamp: entry?.inclusionPromise?.signedEntryTimestamp,
        Payload: {
          body: entry?.canonicalizedBody,
          integratedTime: Number(entry?.integratedTime),
          logIndex: Number(entry?.logIndex),
          logID: Buffer.from(entry?.logId.keyId ?? '', 'base64').toString('hex'),
        },
      }),
    };
    return { payload, annotations };
  }

  /** A bundle of a statement about the digest. */
  async statement(digest: string, who: Who, said: Said = {}): Promise<SerializedBundle> {
    const { predicateType = 'https://slsa.dev/provenance/v1', predicate = {}, seenBy = 'log' } = said;
    const { signer } = await this.#signerFor(who);
    const subject = [{ name: 'x', digest: { sha256: digest.slice('sha256:'.length) } }];
    const statement = { _type: 'https://in-toto.io/Statement/v1', subject, predicateType, predicate };
    const witness =
      seenBy === 'log' ? this.#witness('intoto') : new TSAWitness({ tsaBaseURL: this.#baseURL });
    const builder = new DSSEBundleBuilder({ signer, witnesses: [witness] });
    const data = Buffer.from(JSON.stringify(statement));
    return bundleToJSON(await builder.create({ data, type: 'application/vnd.in-toto+json' }));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return closeServer(this.#server);
  }

  #witness(entryType: 'dsse' | 'intoto'): RekorWitness {
    return new RekorWitness({ rekorBaseURL: this.#baseURL, entryType });
  }

  async #signerFor({ identity, repository, ref, runner, issuer }: Who) {
    const { publicKey, privateKey } = newKeys();
    const said = [
      [8, issuer],
      [11, runner],
      [12, repository],
      [14, ref],
    ] as const;
    const certificate = await this.#authority.issueCertificate({
      publicKey: publicKey.export({ type: 'spki', format: 'der' }),
      subjectAltName: identity,
      extensions: said.flatMap(([number, value]) =>
        value === undefined ? [] : [{ oid: `${FULCIO}.${number}`, value }],
      ),
    });
    const der = bytesOf(certificate).toString('base64');
    const pem = `-----BEGIN CERTIFICATE-----\n${der}\n-----END CERTIFICATE-----\n`;
    const key = { $case: 'x509Certificate' as const, certificate: pem };
    const signWith = (data: Buffer) => Promise.resolve({ signature: sign('sha256', data, privateKey), key });
    return { pem, signer: { sign: signWith } };
  }
}

const chainOf = (...certificates: readonly ArrayBufferView<ArrayBuffer>[]) => ({
  certChain: {
    certificates: certificates.map((one) => ({ rawBytes: bytesOf(one).toString('base64') })),
  },
  validFor: { start: '2020-01-01T00:00:00Z' },
});

const logOf = (key: Buffer, baseUrl: string) => ({
  baseUrl,
  hashAlgorithm: 'SHA2_256',
  publicKey: {
    rawBytes: key.toString('base64'),
    keyDetails: 'PKIX_ECDSA_P256_SHA_256',
    validFor: { start: '2020-01-01T00:00:00Z' },
  },
  logId: { keyId: sha256(key).toString('base64') },
});
