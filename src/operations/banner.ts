/** What a person sees when a development server has started: what runs where, and what to try next. */

export interface BannerFacts {
  readonly version: string
  readonly http: string
  readonly grpc: string
  readonly admin: string
  readonly dataFolder: string
  readonly origin: string
  readonly vkey: string
  readonly vrfPublicKey: string
  readonly treeSize: number
  readonly areKeysNew: boolean
  readonly isExposed: boolean
  /** Which outside services are configured. */
  readonly features: {
    readonly mail: boolean
    readonly sms: boolean
    readonly apns: boolean
    readonly fcm: boolean
  }
}

export function formatBanner(facts: BannerFacts): string {
  const lines = [
    '',
    `  Callsign ${facts.version}, development`,
    '',
    `  app, log       ${column(facts.http)}GET /docs is the API, /checkpoint the log`,
    `  register       ${column(facts.grpc)}gRPC kt.v1.KTService/Register`,
    `  operators      ${column(facts.admin)}GET /healthz, /readyz, /metrics`,
    `  data           ${facts.dataFolder}`,
    '',
    `  ${facts.origin} holds ${facts.treeSize} entries`,
    `  verify with    ${facts.vkey}`,
    `  VRF key        ${facts.vrfPublicKey}`,
    '',
  ]
  lines.push(...warnings(facts), ...linesAboutServices(facts.features), ...linesToTry(facts.http))
  return lines.join('\n')
}

function warnings({ areKeysNew, isExposed }: BannerFacts): readonly string[] {
  const lines = [
    ...(areKeysNew
      ? ['  ! New development keys were made, and kept in the data directory: for trying out, not for users.']
      : []),
    ...(isExposed
      ? ['  ! CALLSIGN_DEV_EXPOSE=1: everybody on this network can reach this development server.']
      : []),
  ]
  return lines.length === 0 ? [] : [...lines, '']
}

/** One for each service that is not there, with the settings that join it and where its messages are meanwhile. */
function linesAboutServices(features: BannerFacts['features']): readonly string[] {
  const missing = SERVICES.filter(({ feature }) => !features[feature])
  if (missing.length === 0) return []
  const lineOf = ({ name, settings, shownAt }: (typeof SERVICES)[number]) =>
    `    ${name.padEnd(14)} ${settings.padEnd(40)}${shownAt}`
  return ['  Shown instead of sent, until these are set:', '', ...missing.map(lineOf), '']
}

function linesToTry(http: string): readonly string[] {
  const post = (path: string, body: object) =>
    `    curl ${http}${path} -H 'content-type: application/json' -d '${JSON.stringify(body)}'`
  return [
    '  Try: sign in. The code is printed here.',
    '',
    post('/app/api/login', { email: 'ann@example.org' }),
    post('/app/api/verify-login', { email: 'ann@example.org', otp: '<code>' }),
    '',
    '',
  ]
}

function column(text: string): string {
  return text.padEnd(26)
}

const SERVICES = [
  {
    feature: 'mail',
    name: 'mail',
    settings: 'CALLSIGN_SMTP_URL, CALLSIGN_MAIL_FROM',
    shownAt: 'GET /dev/inbox',
  },
  { feature: 'sms', name: 'SMS', settings: 'CALLSIGN_SMS_URL', shownAt: 'GET /dev/inbox' },
  {
    feature: 'apns',
    name: 'Apple push',
    settings: 'CALLSIGN_APNS_KEY, _KEY_ID, _TEAM_ID',
    shownAt: 'GET /dev/pushes',
  },
  {
    feature: 'fcm',
    name: 'Android push',
    settings: 'CALLSIGN_FCM_SERVICE_ACCOUNT',
    shownAt: 'GET /dev/pushes',
  },
] as const
