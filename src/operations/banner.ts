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
}

export function formatBanner(facts: BannerFacts): string {
  const lines = [
    '',
    `  Callsign ${facts.version}, development`,
    '',
    `  log, lookups   ${column(facts.http)}GET /checkpoint, /tile/...   POST /api/get-public-keys`,
    `  register       ${column(facts.grpc)}gRPC kt.v1.KTService/Register`,
    `  operators      ${column(facts.admin)}GET /healthz, /readyz, /metrics`,
    `  data           ${facts.dataFolder}`,
    '',
    `  ${facts.origin} holds ${facts.treeSize} entries`,
    `  verify with    ${facts.vkey}`,
    `  VRF key        ${facts.vrfPublicKey}`,
    '',
  ]
  if (facts.areKeysNew) {
    lines.push(
      '  ! New development keys were made and kept in the data directory. They are for trying out, not for users.',
    )
  }
  if (facts.isExposed)
    lines.push('  ! CALLSIGN_DEV_EXPOSE=1: everybody on this network can reach this development server.')
  lines.push(
    '  Try: register a key, look it up, check the proof:',
    '',
    '    node dist/scripts/register.js --user 1 --device 1',
    `    curl ${facts.http}/checkpoint`,
    '',
    '',
  )
  return lines.join('\n')
}

function column(text: string): string {
  return text.padEnd(26)
}
