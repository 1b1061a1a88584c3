/**
 * The table of everything that can go wrong: one row per condition. `title` says what failed, `hint` says what to do
 * next; both are fixed text without data, so no secret can enter here. `exitCode` is 1 for every command error.
 */
export interface CodeRow {
  readonly httpStatus: number;
  /** JSON-RPC 2.0 error code, where the condition can be answered in-band to an MCP client. */
  readonly rpcCode?: number;
  readonly exitCode: number;
  readonly title: string;
  readonly hint: string;
}

const row = (httpStatus: number, title: string, hint: string, rpcCode?: number): CodeRow => ({
  httpStatus,
  ...(rpcCode === undefined ? {} : { rpcCode }),
  exitCode: 1,
  title,
  hint,
});

// One line a row, however long: it is read as a table.
// prettier-ignore
export const CODES = {
  // settings and command line
  'usage/unknown-command': row(400, 'unknown command', 'run the program with --help to see its commands'),
  'usage/unknown-flag': row(400, 'unknown flag', 'run the command with --help to see its flags'),
  'usage/invalid-value': row(400, 'invalid value', 'run the command with --help to see what is accepted'),
  'usage/missing-argument': row(400, 'missing argument', 'run the command with --help to see its arguments'),
  'usage/unexpected-argument': row(400, 'unexpected argument', 'put arguments for the server after --'),
  'usage/conflict': row(400, 'settings exclude each other', 'keep one of them'),
  'usage/not-available': row(501, 'not available yet', 'leave the flag out; a later version will have it'),
  'config/invalid': row(400, 'invalid configuration', 'correct the named key and try again'),
  'config/unreadable': row(400, 'cannot read configuration', 'check that the file exists and may be read'),

  // files, locks
  'file/not-found': row(404, 'file not found', 'check the path'),
  'file/not-a-file': row(400, 'not a regular file', 'name a file, not a directory or device'),
  'file/too-large': row(413, 'file too large', 'check that it is the right file'),
  'file/unreadable': row(400, 'cannot read file', 'check that the file exists and may be read'),
  'file/not-json': row(400, 'file is not valid JSON', 'correct the file at the named place'),
  'file/write-failed': row(500, 'cannot write file', 'check free space and permissions'),
  'file/locked': row(409, 'another process holds the lock', 'wait for it to finish and try again'),

  // audit log
  'audit/unwritable': row(500, 'audit log cannot be opened', 'check that its directory exists and may be written to'),
  'audit/write-failed': row(500, 'audit event could not be written', 'check free space and permissions of the audit log'),

  // outgoing HTTP
  'fetch/invalid-url': row(400, 'invalid URL', 'give an absolute http or https URL'),
  'fetch/refused-address': row(403, 'address not allowed', 'allow private addresses if the server is meant to be local'),
  'fetch/unreachable': row(502, 'server not reachable', 'check the address and the network'),
  'fetch/timeout': row(504, 'server did not answer in time', 'try again, or raise the timeout'),
  'fetch/bad-status': row(502, 'server answered with an error', 'check the address'),
  'fetch/too-large': row(502, 'answer too large', 'check the address'),
  'fetch/not-json': row(502, 'answer is not JSON', 'check the address'),
  'fetch/ca-bundle': row(400, 'unusable CA bundle', 'name a PEM file with at least one certificate'),

  // documents
  'json/invalid': row(400, 'not valid JSON', 'correct the document at the named place', -32700),
  'json/too-large': row(413, 'document too large', 'send a smaller document', -32600),

  // running a workload from the command line
  'run/invalid-name': row(400, 'invalid workload name', 'use 2 to 100 letters, digits, dots, dashes or underscores, beginning with a letter or digit'),
  'run/name-taken': row(409, 'a workload of that name exists', 'choose another --name, or remove it with skep rm'),
  'run/port-busy': row(409, 'port is not available', 'choose another --proxy-port, or leave the flag out for a free one'),
  'run/invalid-volume': row(400, 'invalid volume', 'write host-path:container-path, with :ro at the end for read-only'),
  'run/invalid-profile': row(400, 'invalid permission profile', 'use none, network, or a JSON file with read, write and network'),
  'run/invalid-env': row(400, 'invalid environment variable', 'write KEY=VALUE; a key has letters, digits and underscores'),
  'run/missing-env': row(400, 'missing required environment variable', 'give it with -e KEY=VALUE or --env-file'),
  'run/crashed-at-start': row(502, 'the server stopped right after it was started', 'read its last lines above; check its arguments and environment variables'),
  'run/no-answer': row(504, 'the server does not answer', 'check that it speaks MCP, and --transport; --check-timeout waits longer, --no-check runs it unasked'),
  'run/not-granted': row(403, 'the server asks for more of this machine than it was granted', 'grant it with --permission-profile FILE, or do not run it'),
  'run/cannot-hide': row(422, 'what ignore files name cannot be hidden', 'mount only what the server may see'),
  'run/source-silent': row(504, 'the source of a mount does not answer', 'bring back the machine or program behind it, or unmount it; then try again'),
  'run/invalid-config': row(400, 'invalid run configuration', 'correct the named key, or export the workload again'),
  'run/no-image': row(422, 'there is no image that others could pull', 'make one with skep build and -t REGISTRY/NAME, push it, and run that image'),
  'policy/create-blocked': row(403, 'server creation blocked by policy', 'nothing was made; whoever keeps the policy can allow it'),
  'policy/start-blocked': row(403, 'server restart blocked by policy', 'whoever keeps the policy can allow it; then start it again'),
  'run/ended': row(502, 'the server ended and could not be restarted', 'run it again with --debug and read what it writes'),
  'run/cancelled': row(499, 'cancelled', 'nothing was left behind'),

  'autostart/unavailable': row(501, 'nothing can be started after a reboot here', 'start skep list when you sign in'),
  'autostart/changed': row(409, 'the service was changed by somebody else', 'move it away, and try again'),
  'doctor/broken': row(500, 'something is broken', 'do what is said beside it; --fix mends what can be mended safely'),

  // what to run
  'target/not-found': row(404, 'server not found in the catalogue', 'find names with skep search; an image is written like org/image:tag'),
  'target/invalid': row(400, 'cannot run that', 'give a catalogue name, an image reference, npx://PACKAGE or uvx://PACKAGE'),
  'catalog-source/unreachable': row(502, 'the registry does not answer', 'check the address with skep config get-registry'),
  'catalog-source/refused': row(403, 'the registry address is not allowed', 'use https, or give --allow-private-ip when setting it'),

  // MCP clients and their files
  'client/unknown': row(400, 'invalid client type', 'see the clients with skep client status'),
  'client/not-installed': row(404, 'the client is not installed', 'install it, or see which are with skep client status'),
  'client/file-left-alone': row(409, 'the file of the client is left alone', 'correct the file, or add the server by hand: skep list --format CLIENT prints what to write'),

  // secrets
  'secrets/not-set-up': row(400, 'secrets provider not configured', 'choose where secrets are kept with skep secret setup, or give them as SKEP_SECRET_<NAME> with SKEP_SECRETS_PROVIDER=environment'),
  'secrets/turned-off': row(403, 'secrets are turned off', 'choose where they are kept with skep secret setup'),
  'secrets/invalid-name': row(400, 'invalid secret name', 'use up to 256 characters, no comma among them'),
  'secrets/invalid-value': row(400, 'invalid secret', 'give text of at most 1 MiB'),
  'secrets/invalid-reference': row(400, 'invalid secret parameter', 'write NAME,target=VARIABLE'),
  'secrets/not-found': row(404, 'secret not found', 'see the names with skep secret list; store one with skep secret set NAME'),
  'secrets/read-only': row(409, 'the secrets provider does not support this', 'change the secret where it is kept'),
  'secrets/locked': row(503, 'the secrets store is locked', 'unlock the keyring of your session, or name a file with the password in SKEP_SECRETS_PASSWORD_FILE'),
  'secrets/wrong-password': row(403, 'wrong password of the secrets store', 'try again; skep secret reset-keyring forgets a password that the keyring holds'),
  'secrets/damaged': row(500, 'the secrets store is damaged', 'bring it back from a backup, or remove it; the secrets in it are lost then'),
  'secrets/full': row(413, 'the secrets store is full', 'delete secrets that are not needed any more'),
  'secrets/keyring': row(503, 'the keyring cannot be used', 'unlock it, or choose another place with skep secret setup'),
  'secrets/tool': row(502, 'a program for secrets failed', 'correct what the message names and try again'),

  // workloads and their supervisor
  'mcp/unreachable': row(502, 'the server does not answer', 'see skep status and skep logs'),
  'mcp/refused': row(502, 'the server refused the request', 'see what it offers with skep mcp list'),
  'mcp/no-tool': row(404, 'no such tool', 'see the tools with skep mcp list tools'),
  'mcp/tool-failed': row(502, 'the tool failed', 'see its arguments with skep mcp list tools --format json'),
  'workload/not-found': row(404, 'workload not found', 'see the names with skep list --all'),
  'workload/state-unreadable': row(500, 'the saved state of a workload cannot be read', 'remove the workload with skep rm, then run it again'),
  'workload/other-engine': row(409, 'the workload belongs to another engine', 'start that engine, or point DOCKER_HOST at it'),
  'workload/no-earlier-version': row(404, 'no earlier version is kept', 'only the last upgrade of a workload can be undone'),
  'group/not-found': row(404, 'group not found', 'see the groups with skep group list'),
  'group/exists': row(409, 'a group of that name exists', 'choose another name'),
  'group/unreadable': row(500, 'the file of a group cannot be read', 'correct the file, or remove it; its workloads keep running'),
  'supervisor/unreachable': row(502, 'the Skep supervisor does not answer', 'see its log file for the reason'),
  'supervisor/not-here': row(502, 'the command has to do this itself', 'try again'),
  'supervisor/protocol': row(502, 'the Skep supervisor answered something unexpected', 'stop it with skep stop --all, then try again'),

  // workloads and what they run on
  'runtime/unavailable': row(503, 'no runtime for workloads was found', 'start a container engine or install bubblewrap'),
  'runtime/unknown': row(400, 'unknown runtime', 'set SKEP_RUNTIME to docker or sandbox, or leave it unset'),
  'runtime/engine-unreachable': row(503, 'the container engine does not answer', 'check that it is running and that you may use its socket'),
  'runtime/engine-refused': row(502, 'the container engine refused the request', 'see its message for the reason'),
  'runtime/sandbox-unavailable': row(503, 'the sandbox cannot be used', 'install bubblewrap and allow unprivileged user namespaces'),
  'runtime/name-taken': row(409, 'a workload of this name exists', 'choose another --name or remove the workload first'),
  'runtime/no-such-workload': row(404, 'no such workload', 'run the list command with --all to see the names'),
  'runtime/not-running': row(409, 'the workload is not running', 'start it first'),
  'runtime/start-failed': row(502, 'the workload could not be started', 'correct what the message names and start it again'),
  'runtime/invalid-workload': row(400, 'the workload cannot be created as asked', 'correct the named setting'),
  'runtime/image-not-found': row(404, 'image not found in registry', 'check the spelling of the image reference and its tag'),
  'runtime/image-needs-engine': row(400, 'images need a container engine', 'start Docker or Podman, or run a package with npx://'),
  'runtime/unverified': row(403, 'where the image comes from could not be verified', 'use an image whose origin its catalogue entry states, or give --image-verification warn'),
  'runtime/package-not-found': row(404, 'package not found', 'check the spelling of the package and its version'),
  'runtime/build-failed': row(502, 'the image could not be built', 'correct what the message names and run it again'),
  'runtime/prefetch-failed': row(502, 'the package could not be fetched', 'correct what the message names and run it again'),
  'runtime/npm-missing': row(503, 'npm was not found', 'install npm or put it on the PATH'),
  'runtime/python-missing': row(503, 'Python was not found', 'install python3 with pip (python3-pip of Debian), or start a container engine'),
  'runtime/go-missing': row(503, 'Go was not found', 'install Go and put it on the PATH, or run an image of it'),
  'runtime/aborted': row(499, 'stopped before it was done', 'run the command again'),
  'target/invalid-package': row(400, 'invalid package reference', 'write npx://name, npx://@scope/name@version or uvx://name@version'),

  // registry server
  'registry/bad-request': row(400, 'bad request', 'see /openapi.json for what the endpoint accepts'),
  'registry/unknown-registry': row(404, 'registry not found', 'check the name in the configuration'),
  'registry/not-found': row(404, 'not found', 'list the servers of the registry to see what it holds'),
  'registry/ambiguous-name': row(409, 'more than one entry has that name', 'give its namespace too, as namespace%2Fname'),
  'registry/no-such-route': row(404, 'no such endpoint', 'see /openapi.json for the endpoints'),
  'registry/method-not-allowed': row(405, 'method not allowed', 'use a method of the Allow header'),
  'registry/headers-too-large': row(431, 'request headers too large', 'send fewer or shorter headers'),
  'registry/request-timeout': row(408, 'request not received in time', 'send the request without pauses'),
  'registry/too-many-scrapes': row(503, 'metrics are being read already', 'scrape less often, or from fewer places'),
  'registry/body-too-large': row(413, 'request body too large', 'send less; the limit stands in /openapi.json'),
  'registry/unsupported-type': row(415, 'unsupported content type', 'send application/json'),
  'registry/rate-limited': row(429, 'too many requests', 'wait for as long as Retry-After says'),
  'registry/foreign-host': row(403, 'this host name is not served', 'use an IP address or localhost, or add the name to auth.allowedHosts'),
  'registry/foreign-origin': row(403, 'this origin may not call', 'add the origin to cors.allowedOrigins'),
  'registry/handler-timeout': row(504, 'the request took too long', 'try again in a moment'),
  'registry/not-ready': row(503, 'service not ready', 'try again in a moment'),
  'registry/invalid-address': row(400, 'invalid listen address', 'write host:port, for example :8080'),
  'registry/address-unavailable': row(409, 'cannot listen on the address', 'choose another address'),
  'registry/no-first-sync': row(502, 'a source has never been loaded', 'correct the source; skep-registry validate --file shows what is wrong with a catalogue'),
  'store/locked': row(503, 'the store is in use', 'try again; stop the other process or choose another storage.path'),
  'store/newer': row(409, 'the store was written by a newer version', 'upgrade skep-registry or choose another store'),
  'store/older': row(409, 'the store has an older schema', 'run skep-registry migrate up'),
  'store/failed': row(500, 'the store failed', 'see the log for the reason'),
  'store/unavailable': row(503, 'the store does not answer', 'check that the database runs and can be reached'),
  'store/conflict': row(503, 'others changed the same thing at the same time', 'try again'),
  'store/invalid-settings': row(400, 'unusable database settings', 'correct the named key of "database"'),
  'store/refused-login': row(503, 'the database refused the login', 'check user, password and grants; see skep-registry prime-db'),
  'store/no-token': row(503, 'no token to sign in to the database with', 'check the cloud credentials of this machine and database.dynamicAuth'),
  'store/password-file': row(400, 'unusable password file', 'keep it to its owner with chmod 0600'),
  'store/source-unknown': row(404, 'source not found', 'check the name'),
  'store/source-in-use': row(409, 'source is referenced by one or more registries', 'take it out of these registries first'),
  'store/managed-exists': row(409, 'at most one managed source is allowed', 'use the managed source that exists'),
  'store/api-created': row(409, 'cannot overwrite what was created through the API', 'rename it in the configuration file, or delete it through the API first'),
  'store/lease-lost': row(409, 'another replica has taken the synchronisation over', 'nothing to do: it goes on there'),

  // where a registry takes its entries from
  'source/git-missing': row(503, 'git was not found', 'install git and put it on the PATH of skep-registry'),
  'source/git-failed': row(502, 'git could not fetch', 'see the message of git'),
  'source/invalid-repository': row(400, 'invalid repository address', 'write https://host/path, ssh://user@host/path or user@host:path'),
  'source/invalid-ref': row(400, 'invalid branch, tag or commit', 'check how it is written'),
  'source/invalid-path': row(400, 'invalid path', 'write the path from the top of the repository, without ..'),
  'source/path-not-allowed': row(403, 'the file is outside of the allowed folders', 'add its folder to limits.allowedPaths of the configuration'),
  'source/not-available': row(501, 'source not available yet', 'take the source out of the configuration; a later version will have it'),
  'source/invalid-credentials': row(400, 'unusable credentials', 'put the password alone into the file, on one line'),
  'source/auth-failed': row(502, 'the source refused the credentials', 'check the user name and the password'),
  'source/repository-not-found': row(502, 'repository not found', 'check the address; a private repository also hides from wrong credentials'),
  'source/ref-not-found': row(502, 'branch, tag or commit not found', 'check its spelling in the source'),
  'source/path-not-found': row(502, 'file not found in the repository', 'check the key "path" of the source'),
  'source/unreachable': row(502, 'the source is not reachable', 'check the address and the network'),
  'source/timeout': row(504, 'the source did not answer in time', 'try again later'),
  'source/too-large': row(502, 'the source holds too much', 'check that it is the right one, split it, or raise limits.maxCatalogueSize or limits.apiSource'),
  'source/bad-answer': row(502, 'the source answered something unexpected', 'check that the address is one of a registry'),
  'source/endless': row(502, 'the pages of the source do not end', 'tell the operator of the registry that answers, or raise limits.apiSource.maxPages'),

  // catalogues
  'catalog/not-json': row(400, 'catalogue is not valid JSON', 'correct the file at the named place'),
  'catalog/wrong-shape': row(400, 'file is no catalogue', 'give a registry file ("data.servers"), a list of server documents, or a ToolHive catalogue'),
  'catalog/too-large': row(413, 'catalogue too large', 'split it, or serve it through a registry'),
  'catalog/empty': row(400, 'catalogue is empty', 'add at least one server, skill or plugin'),
  'catalog/mostly-invalid': row(400, 'most entries are invalid', 'check that the file has a supported format'),
  'catalog/invalid-extension': row(400, 'invalid publisher extension', 'correct the named member in the catalogue'),
  'catalog/not-found': row(404, 'no such server in the catalogue', 'search the catalogue for its name'),
  'catalog/ambiguous-name': row(409, 'more than one server has that name', 'use the full name'),
  'catalog/unusable-server': row(400, 'the catalogue entry cannot be run', 'choose another server, or run its image or package directly'),
  'catalog/bad-answer': row(502, 'registry answered something unexpected', 'check the registry address'),

  // who is calling
  'auth/invalid-provider': row(400, 'invalid identity provider settings', 'correct the named setting'),
  'auth/unauthenticated': row(401, 'authentication required', 'send a valid bearer token'),
  'auth/unavailable': row(503, 'the identity provider does not answer', 'try again in a few seconds'),
  'auth/exchange-refused': row(401, 'token exchange failed', 'sign in again; the log says what the token endpoint answered'),
  'auth/insufficient-scope': row(403, 'insufficient scope', 'ask for a token with the named scope'),
  'claims/invalid': row(400, 'invalid claims', 'map each claim to a string or a list of strings'),

  // what a caller may do in a registry
  'access/forbidden': row(403, 'forbidden: insufficient permissions', 'ask for a role that allows this operation'),
  'access/insufficient-claims': row(403, 'insufficient claims: caller claims do not cover resource claims', 'ask who may do this with skep-registry explain'),
  'access/unlabeled': row(403, 'resource has no claims', 'a super-admin can give it claims'),
  'access/last-claim': row(403, 'the last claim of a protected resource cannot be dropped', 'keep one claim, or ask a super-admin'),
  'access/config-created': row(403, 'created by the configuration file', 'change the configuration file instead'),
  'access/hidden': row(404, 'not found', 'check the name'),
  'access/claims-required': row(400, 'claims are required when authorization is enabled', 'add claims to the request'),
  'access/claims-mismatch': row(409, 'claims mismatch: claims do not match existing entry', 'send exactly the claims of the first version'),
  'access/version-exists': row(409, 'version already exists', 'publish under a new version'),
  'access/no-managed-source': row(409, 'no managed source available', 'add a managed source to the configuration'),

  // the proxy, at start
  'proxy/port-busy': row(409, 'port is not available', 'choose another port, or 0 for a free one'),
  'proxy/listen-failed': row(500, 'cannot listen', 'check the host address and the port'),
  'proxy/step-unbuildable': row(500, 'a step of the proxy cannot be built', 'correct the named setting'),
  'proxy/backend-gone': row(502, 'the server behind the proxy is gone', 'start the workload again', -32603),

  // the proxy, per request; the titles are what MCP clients see
  'proxy/origin-refused': row(403, 'Origin not allowed', 'add the origin to allowed_origins', -32600),
  'proxy/host-refused': row(403, 'Host not allowed', 'connect by an IP address, localhost or the name given as --host', -32600),
  'proxy/host-ambiguous': row(400, 'more than one Host header', 'send one Host header', -32600),
  'proxy/media-type': row(415, 'Content-Type must be application/json', 'send the message as application/json', -32600),
  'proxy/body-too-large': row(413, 'Request Entity Too Large', 'send a smaller request'),
  'proxy/batch': row(400, 'batch requests are not accepted', 'send one message per request', -32600),
  'proxy/not-json': row(400, 'Parse error', 'send one JSON object', -32700),
  'proxy/too-deep': row(400, 'nested too deeply', 'nest at most 1,000 levels', -32600),
  'proxy/not-json-rpc': row(400, 'Invalid Request', 'send one JSON-RPC 2.0 message', -32600),
  'proxy/version-unsupported': row(400, 'Unsupported protocol version', 'use a version named in the message', -32600),
  'proxy/era-mismatch': row(400, 'Header does not match the request', 'send the header and the body alike', -32020),
  'proxy/era-method': row(404, 'Method not found', 'leave out what MCP 2026-07-28 took away, or initialize', -32601),
  'proxy/era-version': row(400, 'Unsupported protocol version', 'use a version of data.supported', -32022),
  'proxy/params-ambiguous': row(400, 'params has a name that servers may take for another', 'write names in params as MCP has them, each once', -32602),
  'proxy/tool-unnamed': row(400, 'the name of the tool is missing', 'name the tool in params.name', -32602),
  'proxy/tool-unknown': row(200, 'tool not found', 'call a tool that tools/list names', -32602),
  'proxy/era-params': row(400, 'Protocol version or client capabilities missing in _meta', 'send protocolVersion and clientCapabilities in _meta', -32602),
  'proxy/state-unknown': row(400, 'requestState is not known', 'send the request anew, without requestState and inputResponses', -32602),
  'proxy/input-invalid': row(400, 'inputResponses must hold an object for what was asked', 'send an object per name of inputRequests', -32602),
  'proxy/filter-invalid': row(400, 'notifications must say what to listen to', 'send a filter as notifications', -32602),
  'proxy/unauthorized': row(403, 'Unauthorized', 'ask whoever writes the policies; skep authz explain tells which decided', 403),
  'proxy/rate-limited': row(429, 'Rate limit exceeded', 'wait as long as Retry-After says', 429),
  'proxy/repeated-member': row(400, 'a member occurs twice in one object', 'send each member once', -32600),
  'proxy/webhook-body': row(413, 'Request Entity Too Large', 'send a request of at most 1 MiB', -32600),
  'proxy/webhook-denied': row(403, 'Request denied by policy', 'see the log for the webhook that denied it', 403),
  'proxy/webhook-refused': row(403, 'Request denied by webhook policy', 'see the log for the webhook that denied it', 403),
  'proxy/webhook-unprocessable': row(422, 'Request denied by webhook policy', 'see the log for the webhook that denied it', 403),
  'proxy/webhook-failed': row(500, 'Webhook error', 'see the log for the webhook that could not be asked', -32603),
  'proxy/webhook-patch': row(500, 'Webhook patch cannot be applied', 'see the log for the webhook that changes requests', -32603),
  'proxy/not-acceptable': row(406, 'Not Acceptable', 'accept application/json or text/event-stream', -32000),
  'proxy/method-not-allowed': row(405, 'Method Not Allowed', 'see the Allow header'),
  'bridge/lost': row(502, 'the connection to the server broke before it had answered', 'send it again', -32000),
  'bridge/unreadable': row(502, 'the server sent what is no message', 'see skep logs', -32000),
  'front-door/no-workload': row(404, 'no such workload', 'see the names with skep list --all', -32000),
  'front-door/away': row(503, 'the workload is not running', 'start it with skep start NAME', -32000),
  'front-door/closed': row(409, 'the front door is closed', 'give it another port with skep config set front-port N'),
  'proxy/no-route': row(404, 'Not Found', 'use the URL that skep list prints'),
  'proxy/session-missing': row(400, 'Mcp-Session-Id header is required', 'send initialize first'),
  'proxy/session-needed': row(400, 'this request needs a session', 'send initialize first', -32600),
  'proxy/session-unknown': row(404, 'Session not found', 'send initialize again', -32001),
  'proxy/session-limit': row(503, 'too many sessions', 'end sessions with DELETE, or wait', -32000),
  'proxy/timeout': row(504, 'Timeout', 'raise SKEP_PROXY_REQUEST_TIMEOUT', -32000),
  'proxy/backend-lost': row(502, 'the server stopped before it had answered; see skep logs', 'send it again', -32603),
  'proxy/backend-away': row(503, 'the server stopped and is being restarted; see skep logs', 'try again in a few seconds', -32000),
  'proxy/bad-gateway': row(502, 'Bad gateway', 'see the logs of the workload', -32603),
  'proxy/cancelled': row(499, 'Request cancelled', 'the client cancelled it', -32000),
  'proxy/client-gone': row(499, 'the client went away', 'connect again'),
  'proxy/withheld': row(500, 'Internal error', 'see the log for the step that withheld the reply', -32603),
  'proxy/busy': row(503, 'the server takes no more messages now', 'try again after a second', -32000),
  'proxy/bodies-unfinished': row(503, 'too many unfinished requests', 'send the request again, without a pause in it', -32000),
  'proxy/shutting-down': row(503, 'the proxy is shutting down', 'connect again later', -32000),

  // programming errors and the unexpected
  'internal/bug': row(500, 'internal error', 'this is a defect in Skep; please report it with the --debug output', -32603),
} as const satisfies Record<string, CodeRow>;

export type Code = keyof typeof CODES;
