/**
 * What a person sees when a development server has started: what runs where, what is missing, and, last and so next to
 * where they type, what to try first. It fits a terminal of 100 columns and, with a prompt, of 30 lines.
 */

import { encodeQR } from 'qr'

export interface BannerFacts {
  readonly version: string
  /** Where a browser on this machine finds the server. */
  readonly http: string
  readonly grpc: string
  readonly admin: string
  readonly serverApi: string
  readonly dataFolder: string
  readonly origin: string
  readonly vkey: string
  readonly treeSize: number
  readonly areKeysNew: boolean
  /** Where phones on the same network find the server; absent where it is on this machine only. */
  readonly phones?: string
  /** Whether it is for a terminal, which has colours. */
  readonly isTerminal: boolean
  /** Which outside services are configured. */
  readonly features: {
    readonly mail: boolean
    readonly sms: boolean
    readonly apns: boolean
    readonly fcm: boolean
    readonly turn: boolean
    readonly media: 'janus' | 'livekit' | false
  }
  /** Where devices reach the media gateway, if there is one. */
  readonly mediaUrl?: string | undefined
}

export type ReadyFacts = Pick<BannerFacts, 'http' | 'grpc' | 'admin' | 'serverApi' | 'origin'>

export function formatBanner(facts: BannerFacts): string {
  const { version, http, grpc, admin, serverApi, dataFolder, origin, treeSize, vkey } = facts
  const lines = [
    '',
    `  Callsign ${version}, development`,
    '',
    `  console        ${column(`${http}/dev`)}codes, pushes, calls and the log, live`,
    `  client         ${column(`${http}/dev/client`)}a phone in a browser tab`,
    `  documents      ${column(`${http}/docs`)}by task; /docs/api, /docs/events`,
    `  registration   ${column(grpc)}gRPC kt.v1.KTService/Register`,
    `  operators      ${column(`${admin}/metrics`)}also /healthz, /readyz`,
    `  server API     ${column(`${serverApi}/server/openapi.json`)}for your backend; /operator`,
    ...(facts.mediaUrl === undefined
      ? []
      : [
          `  media          ${column(facts.mediaUrl)}${MEDIA[facts.features.media || 'janus']}, for encrypted group calls`,
        ]),
    `  log            ${column(`${http}/checkpoint`)}${origin}, ${treeSize} entries`,
    `  verify with    ${vkey}`,
    `  data           ${dataFolder}`,
    '',
    ...linesAboutPhones(facts),
    ...warnings(facts),
    ...linesAboutServices(facts.features),
    ...linesToTry(http),
  ]
  return lines.join('\n')
}

/** A production server's lines on a terminal. */
export function formatReady({ http, grpc, admin, serverApi, origin }: ReadyFacts): string {
  return `callsign: ready. Public: ${http}, gRPC: ${grpc}, operators: ${admin}, server API: ${serverApi}, log: ${origin}\n`
}

/** The address for phones, and as a QR code; what is open to the network and what is not. */
function linesAboutPhones({ phones, http, isTerminal }: BannerFacts): readonly string[] {
  if (phones === undefined) return []
  return [
    `  On this network: ${phones}`,
    '',
    ...encodeQR(phones, 'ascii', { border: 2, ecc: 'low' })
      .trimEnd()
      .split('\n')
      // Light on dark, whatever the terminal's own colours are.
      .map(line => (isTerminal ? `  \x1b[97;40m${line}\x1b[0m` : `  ${line}`)),
    '',
    '  ! Everybody on this network can use the API, the WebSocket, /dev/client and /docs.',
    `    The console, codes and pushes stay on this machine: ${http}/dev`,
    '',
  ]
}

function warnings({ areKeysNew }: BannerFacts): readonly string[] {
  const lines = [
    ...(areKeysNew
      ? ['  ! New development keys were made, and kept in the data directory: not for real users.']
      : []),
  ]
  return lines.length === 0 ? [] : [...lines, '']
}

/** One for each service that is not there, with the settings that add it and the substitute used without it. */
function linesAboutServices(features: BannerFacts['features']): readonly string[] {
  const missing = SERVICES.filter(({ feature }) => !features[feature])
  if (missing.length === 0) return []
  const lineOf = ({ name, settings, meanwhile }: (typeof SERVICES)[number]) =>
    `    ${name.padEnd(13)}${settings.padEnd(40)}${meanwhile}`
  return ['  Not set up, with what to set, and what is done meanwhile:', ...missing.map(lineOf), '']
}

function linesToTry(http: string): readonly string[] {
  return [
    `  Try: open ${http}/dev/client in two browser tabs,`,
    '  sign in as two people, make them contacts, and call one from the other. Or by hand:',
    '',
    `    curl ${http}/app/api/login \\`,
    `      -H 'content-type: application/json' -d '{"email":"ann@example.org"}'`,
    '',
    '',
  ]
}

function column(text: string): string {
  return `${text.padEnd(36)} `
}

const MEDIA = { janus: 'Janus', livekit: 'LiveKit' } as const
const ON_CONSOLE = 'shown on the console'
const SERVICES = [
  { feature: 'mail', name: 'mail', settings: 'CALLSIGN_SMTP_URL, CALLSIGN_MAIL_FROM', meanwhile: ON_CONSOLE },
  { feature: 'sms', name: 'SMS', settings: 'CALLSIGN_SMS_URL', meanwhile: ON_CONSOLE },
  {
    feature: 'apns',
    name: 'Apple push',
    settings: 'CALLSIGN_APNS_KEY, _KEY_ID, _TEAM_ID',
    meanwhile: ON_CONSOLE,
  },
  {
    feature: 'fcm',
    name: 'Android push',
    settings: 'CALLSIGN_FCM_SERVICE_ACCOUNT',
    meanwhile: ON_CONSOLE,
  },
  {
    feature: 'turn',
    name: 'TURN',
    settings: 'CALLSIGN_TURN_URL, _TLS_URL, _SECRETS',
    meanwhile: 'a coturn on this machine, if any',
  },
  {
    feature: 'media',
    name: 'group media',
    settings: 'CALLSIGN_JANUS_..., or apt: janus',
    meanwhile: 'calls of two, from device to device',
  },
] as const
