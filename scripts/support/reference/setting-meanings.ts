/** Meanings of settings, for the table of docs/reference/settings.md: those that are about one thing share a row. */

interface Meaning {
  readonly names: readonly string[]
  readonly says: string
}

export const MEANINGS: readonly Meaning[] = [
  {
    names: ['KT_PRIVATE_KEY', 'VRF_PRIVATE_KEY', 'CALLSIGN_ORIGIN', 'CALLSIGN_SECRET'],
    says: 'from `keygen`; a store refuses other keys than its own. Development makes them',
  },
  {
    names: ['KT_SECOND_PRIVATE_KEY'],
    says: 'another `KT_PRIVATE_KEY` of the same origin, which signs each checkpoint, too, while the log [changes its key](../run/log.md#change-the-key-of-the-log)',
  },
  {
    names: ['KT_INDEX_PRIVATE_KEY'],
    says: "from `keygen`: signs the log's [index](../run/log.md#the-index); without it there is none. Development makes it",
  },
  {
    names: ['KT_INDEX_SECOND_PRIVATE_KEY'],
    says: 'another of the same name, which signs, too, while the index [changes its key](../run/log.md#change-the-key-of-the-index)',
  },
  {
    names: ['CALLSIGN_INDEX_SECONDS'],
    says: 'the least time between two leaves of the index',
  },
  {
    names: ['KT_PUBLIC_KEY', 'VRF_PUBLIC_KEY', 'KT_INDEX_PUBLIC_KEY'],
    says: 'from `keygen`, for auditors and clients; the server ignores them',
  },
  {
    names: ['CALLSIGN_MODE'],
    says: '`development`: as `--dev`',
  },
  {
    names: ['CALLSIGN_PUBLIC_URL'],
    says: 'what clients see; in development, if not set, the address listened on',
  },
  {
    names: ['CALLSIGN_DATA_DIR'],
    says: 'one server at a time',
  },
  {
    names: ['CALLSIGN_HTTP_HOST', 'CALLSIGN_HTTP_PORT'],
    says: 'the app, lookups and the public log',
  },
  {
    names: ['CALLSIGN_TLS_CERT', 'CALLSIGN_TLS_KEY'],
    says: 'PEM files: the HTTP port speaks TLS, 1.3 and 1.2 without CBC ciphers',
  },
  {
    names: ['CALLSIGN_TRUSTED_PROXIES'],
    says: 'addresses and ranges whose `X-Forwarded-For` is believed',
  },
  {
    names: ['CALLSIGN_CORS_ORIGINS'],
    says: 'exact origins of web pages that may call the API; in development pages of this machine may anyway',
  },
  {
    names: ['CALLSIGN_MIN_CLIENT_VERSION'],
    says: 'such as `ios/1.4.0,android/2.0.0`: older ones get 426',
  },
  {
    names: ['CALLSIGN_GRPC_HOST', 'CALLSIGN_GRPC_PORT'],
    says: 'beyond loopback only with a token or client certificates',
  },
  {
    names: ['CALLSIGN_GRPC_TOKEN'],
    says: 'callers send it as `authorization: Bearer <token>`',
  },
  {
    names: [
      'CALLSIGN_GRPC_TLS_CERT',
      'CALLSIGN_GRPC_TLS_KEY',
      'CALLSIGN_GRPC_TLS_CLIENT_CA',
      'CALLSIGN_GRPC_TLS_CLIENT_PINS',
    ],
    says: "PEM files; pins are SHA-256 of the client's SPKI, base64, comma-separated",
  },
  {
    names: ['CALLSIGN_ADMIN_HOST', 'CALLSIGN_ADMIN_PORT'],
    says: "operators' port",
  },
  {
    names: ['CALLSIGN_SERVER_API_HOST', 'CALLSIGN_SERVER_API_PORT'],
    says: "the [server API](../build/backend.md) for your backend, and the operators' page: plain HTTP, so beyond loopback only on a private network",
  },
  {
    names: ['CALLSIGN_SERVER_API'],
    says: '`public`: the HTTP port has the server API, too, under its TLS. A server key then works from anywhere',
  },
  {
    names: ['CALLSIGN_FRONTS'],
    says: 'processes that serve the HTTP port together while this one writes; 0: this one serves it alone ([fronts](../run/processes.md))',
  },
  {
    names: ['CALLSIGN_DATABASE_URL'],
    says: 'PostgreSQL 15 or newer that nodes share, `postgres://user:password@host/database?sslmode=verify-full`: this server is one node of several ([how](../run/machines.md)). A node has at least one front, and no development console',
  },
  {
    names: ['CALLSIGN_DATABASE_KEPT_BY'],
    says: "where acknowledged changes survive the loss of PostgreSQL's machine: at its synchronous `standbys`, which the server looks at; in the provider's `storage`, which it can't see; or only on PostgreSQL's own `disk`, as in development ([how](../run/machines.md#how-postgresql-keeps-changes))",
  },
  {
    names: ['CALLSIGN_NODE_HOST', 'CALLSIGN_NODE_PORT', 'CALLSIGN_NODE_NAME'],
    says: 'where other nodes reach this one, and a name that no other has',
  },
  {
    names: ['CALLSIGN_NODE_TLS_CERT', 'CALLSIGN_NODE_TLS_KEY', 'CALLSIGN_NODE_TLS_CA'],
    says: "PEM files: this node's certificate, for its host, and the authority that vouches for nodes and nothing else. On loopback they may be left out; `CALLSIGN_SECRET` [proves a link](../run/machines.md#proof-of-a-link) either way",
  },
  {
    names: ['CALLSIGN_LOG_HEAD_FILE'],
    says: 'every checkpoint is recorded there before anyone sees it; outside the data directory. Production warns if not set',
  },
  {
    names: ['CALLSIGN_WITNESS_POLICY'],
    says: 'a policy whose quorum of witnesses cosigns every checkpoint before anyone sees it ([how](../run/log.md#witnesses))',
  },
  {
    names: ['CALLSIGN_NATIVE_HASHES'],
    says: 'native binaries beyond those of this version that production may load: SHA-256, 64 hexadecimal digits each, by commas ([why](../../SECURITY.md#native-binaries))',
  },
  {
    names: ['CALLSIGN_LOG_FROZEN'],
    says: '`1`: read-only',
  },
  {
    names: ['CALLSIGN_KT_REQUIRE_AUTH'],
    says: '`1`: lookups need an access token, which the SDKs send; the public log never does',
  },
  {
    names: ['CALLSIGN_VRF_THREADS', 'CALLSIGN_VRF_CACHE_ENTRIES'],
    says: 'VRF work and its cache (170 bytes an entry)',
  },
  {
    names: ['CALLSIGN_SMTP_URL', 'CALLSIGN_MAIL_FROM', 'CALLSIGN_SMTP_CA'],
    says: 'mail: `smtp://user:password@host:587` (a password needs TLS, unless `?allowPlain=true`), `Callsign <no-reply@example.org>`, a PEM file',
  },
  {
    names: ['CALLSIGN_SMS_URL', 'CALLSIGN_SMS_HEADERS', 'CALLSIGN_SMS_BODY'],
    says: 'SMS: a gateway that takes one POST for one message: `https://`, or `http://` [on a private network](../build/backend.md#webhooks)',
  },
  {
    names: ['CALLSIGN_SMS_RETRIEVER_HASH'],
    says: 'the 11 characters that Android finds the app by',
  },
  {
    names: ['CALLSIGN_SMS_COUNTRIES'],
    says: 'countries with numbers that are served, by ISO 3166 letters: `VN,DE`; without it every country. Satellites and other networks outside all countries are served only where they are listed: `VN,+870`, or `*,+870` for every country beside one ([SMS pumping](../run/mail-and-push.md#sms-pumping))',
  },
  {
    names: ['CALLSIGN_SMS_RANGE_HOURLY', 'CALLSIGN_SMS_NETWORK_HOURLY'],
    says: 'unconfirmed messages an hour to numbers with the same first seven digits, and asked for by one network (up to 64 times that by a prefix around it); beyond it nine for each confirmed one',
  },
  {
    names: ['CALLSIGN_SMS_CALLING_CODE_HOURLY', 'CALLSIGN_SMS_DAILY_BUDGET'],
    says: 'unconfirmed messages an hour to one calling code, and a day over all; beyond it twenty for each one that was confirmed within a day',
  },
  {
    names: ['CALLSIGN_LOGIN_CHECK_URL', 'CALLSIGN_LOGIN_CHECK_TOKEN', 'CALLSIGN_LOGIN_CHECK_CA'],
    says: 'a [service of your own](../run/mail-and-push.md#sms-pumping) that is asked before a code leaves: `https://`, or `http://` [on a private network](../build/backend.md#webhooks); its bearer token; a PEM file',
  },
  {
    names: [
      'CALLSIGN_APNS_KEY',
      'CALLSIGN_APNS_KEY_ID',
      'CALLSIGN_APNS_TEAM_ID',
      'CALLSIGN_APNS_BUNDLE_ID',
      'CALLSIGN_APNS_HOST',
      'CALLSIGN_APNS_CA',
      'CALLSIGN_APNS_PORT',
    ],
    says: "push to Apple devices: the text of the `.p8` file, its ids, the app's bundle id",
  },
  {
    names: ['CALLSIGN_FCM_SERVICE_ACCOUNT', 'CALLSIGN_FCM_URL'],
    says: 'push to Android: the JSON of the service account. A server at another address speaks HTTP/2, by `http` without TLS',
  },
  {
    names: ['CALLSIGN_VAPID_KEY', 'CALLSIGN_VAPID_CONTACT'],
    says: 'push to browsers: the key from `keygen` (development makes one), and where push services reach you. Another key needs every browser to subscribe anew, which the SDK does when the page is next opened',
  },
  {
    names: ['CALLSIGN_WEB_PUSH_HOSTS'],
    says: 'push services beside those of Chrome, Edge, Firefox and Safari ([why](../protocol/push.md#web-push))',
  },
  {
    names: ['CALLSIGN_TOKEN_AUDIENCES', 'CALLSIGN_TOKEN_KEY'],
    says: '[user tokens](../build/backend.md#user-tokens): the services of yours that they may be for, and the keys from `keygen` that sign them (development makes one)',
  },
  {
    names: ['CALLSIGN_WEBHOOK_URL', 'CALLSIGN_WEBHOOK_SECRET', 'CALLSIGN_WEBHOOK_WAITING_MAX'],
    says: 'an endpoint of [webhooks](../build/backend.md#webhooks), the secret by which it knows the server (two while it changes), and how many events may wait for all endpoints',
  },
  {
    names: ['CALLSIGN_DEV_JANUS'],
    says: '`off`: `npm start` starts no Janus, though the program is installed',
  },
  {
    names: [
      'CALLSIGN_JANUS_ADMIN_URL',
      'CALLSIGN_JANUS_ADMIN_SECRET',
      'CALLSIGN_JANUS_ADMIN_KEY',
      'CALLSIGN_JANUS_TOKEN_SECRET',
      'CALLSIGN_JANUS_CLIENT_URL',
    ],
    says: 'the [media gateway](../run/gateways.md#janus): its Admin API, the three secrets of its files, and where devices reach it. With none of them calls bring their own media',
  },
  {
    names: [
      'CALLSIGN_JANUS_EVENTS_HOST',
      'CALLSIGN_JANUS_EVENTS_PORT',
      'CALLSIGN_JANUS_EVENTS_USER',
      'CALLSIGN_JANUS_EVENTS_PASSWORD',
    ],
    says: 'where the gateway sends its events, which show a restart at once and who is there',
  },
  {
    names: ['CALLSIGN_JANUS_FILE'],
    says: '[several gateways](../run/gateways.md#several-janus), in the place of the settings of one but `CALLSIGN_JANUS_EVENTS_HOST` and `CALLSIGN_JANUS_EVENTS_PORT`: a JSON file, [as below](#several-media-gateways)',
  },
  {
    names: [
      'CALLSIGN_LIVEKIT_URL',
      'CALLSIGN_LIVEKIT_API_URL',
      'CALLSIGN_LIVEKIT_API_KEY',
      'CALLSIGN_LIVEKIT_API_SECRET',
      'CALLSIGN_LIVEKIT_ALLOW_AES128',
    ],
    says: "LiveKit as the media gateway, in the place of Janus: where devices reach it, its API, and a pair of its `keys`. `1`: all devices of a call have keys of 128 bits, as LiveKit's SDKs for phones need",
  },
  {
    names: [
      'CALLSIGN_TURN_SECRETS',
      'CALLSIGN_TURN_URL',
      'CALLSIGN_TURN_TLS_URL',
      'CALLSIGN_TURN_TTL_SECONDS',
    ],
    says: 'the TURN relay that devices are sent to; the first secret signs',
  },
  {
    names: ['CALLSIGN_STOMP_TCP_PORT'],
    says: 'STOMP without WebSocket, for programs on this machine; `stompTcp` in the ready line',
  },
  {
    names: ['CALLSIGN_OIDC_PROVIDERS'],
    says: 'JSON list of `{"name", "issuer", "clientIds", "jwksUri"?}`; `{tenantid}` in the path of an issuer stands for [any tenant](../run/install.md#identity-providers)',
  },
  {
    names: [
      'CALLSIGN_APPLE_CLIENT_IDS',
      'CALLSIGN_APPLE_TEAM_ID',
      'CALLSIGN_APPLE_KEY_ID',
      'CALLSIGN_APPLE_PRIVATE_KEY',
      'CALLSIGN_APPLE_ISSUER',
      'CALLSIGN_APPLE_JWKS_URL',
      'CALLSIGN_APPLE_TOKEN_URL',
      'CALLSIGN_APPLE_REVOKE_URL',
    ],
    says: 'Sign in with Apple',
  },
  {
    names: ['CALLSIGN_AUTH_ACCESS_SECONDS', 'CALLSIGN_AUTH_REFRESH_SECONDS', 'CALLSIGN_AUTH_SESSION_SECONDS'],
    says: 'how long tokens and sessions last; sessions of a listed device since they were last used',
  },
  {
    names: ['CALLSIGN_AUTH_STEP_UP_SECONDS'],
    says: 'how long [a proof after the sign-in](../protocol/accounts.md#prove-it-once-more) is good for, by which a user may change login methods, export the account or end it. 0 asks for none; the server warns of that at its start',
  },
  {
    names: ['CALLSIGN_SIGN_IN_WAIT_HOURS'],
    says: "how long a right code waits for [an answer of the owner's device](../protocol/sign-in.md#when-a-right-code-waits)",
  },
  {
    names: ['CALLSIGN_HISTORY_DAYS'],
    says: "for how many days calls stay in their people's history; 0: the server writes none, and lists of calls are empty. A shorter time [ends older rows](../run/privacy.md#how-long-it-is-kept) from the start on",
  },
  {
    names: ['CALLSIGN_REPORTS_DAYS', 'CALLSIGN_AUDIT_DAYS'],
    says: 'for how many days [closed reports](../run/moderation.md) and rows of the audit log are kept; an open report stays until it is closed. A shorter time ends older ones from the start on, about a thousand a second',
  },
  {
    names: ['CALLSIGN_TEST_IDENTIFIERS'],
    says: '`{"+15550100":"424242"}`: addresses of reviewers with fixed codes',
  },
  {
    names: ['CALLSIGN_BLOCKED_COUNTRIES'],
    says: 'ISO 3166 letters, such as `KP,CU`: their numbers are refused',
  },
  {
    names: ['CALLSIGN_APP_NAME', 'CALLSIGN_LANGUAGE'],
    says: 'in messages; `en`, `vi` or `de` where the user asks for no other',
  },
  {
    names: ['CALLSIGN_CONTACTS'],
    says: 'who makes contacts: `users` by requests and links, or the `server`, which is [a backend of yours](../build/backend.md#contacts)',
  },
  {
    names: ['CALLSIGN_DEEP_LINK_SCHEME', 'CALLSIGN_APPLE_APP_IDS', 'CALLSIGN_ANDROID_APPS'],
    says: 'what opens share links: `ABCDE12345.com.example.app`; `com.example.app=AB:CD:…`',
  },
  {
    names: ['CALLSIGN_PASSKEY_RP_ID'],
    says: 'the domain that [passkeys](../run/install.md#passkeys) are made for; without it there are none, in development they are of `localhost`. Passkeys of one domain are worth nothing under another, so it is chosen once',
  },
  {
    names: ['CALLSIGN_PASSKEY_ORIGINS'],
    says: 'where they may be used: `https` origins of the domain or below it, and `android:apk-key-hash:…` of apps, by commas. Without it: `https://` with the domain, and the apps of `CALLSIGN_ANDROID_APPS`. In development every port of `http://localhost` may as well',
  },
  {
    names: ['CALLSIGN_JSON_IDS'],
    says: '`number`: ids in replies are bare digits',
  },
  {
    names: ['CALLSIGN_LOG_LEVEL'],
    says: '`debug`, `warn`, `error`, `fatal`, `silent`',
  },
  {
    names: ['CALLSIGN_RATES'],
    says: '`{"call-start":40}`: [rates by name](#rates)',
  },
  {
    names: ['CALLSIGN_RATE_LIMITS', 'CALLSIGN_DEV_EXPOSE'],
    says: '`off` and `1`, in development only; [`1` is `--lan`](../build/development.md#phones-on-the-same-network)',
  },
]
