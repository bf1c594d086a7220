/**
 * Issuers of ID tokens, as settings name them (contract 0.1, "2.6 Issuers"). Google signs under two spellings of one issuer.
 * Microsoft signs for each of its tenants under an issuer of its own: settings name them all by a template with
 * `{tenantid}`, and the token's `tid` says which one it is.
 */

/** Whether settings may name it: an http or https address, a template of one, or Google's short spelling. */
export function isIssuer(text: string): boolean {
  if (text === GOOGLE_SHORT) return true
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) return false
  const [, ...behind] = text.split(TENANT)
  const isInPath =
    behind.length === 0 || /^https?:\/\/[^/?#{]+\/([^?#{]*\/)?\{tenantid\}(\/[^?#{]*)?$/.test(text)
  return isInPath && !/[{}]/.test(text.replace(TENANT, ''))
}

/** Whether it stands for the issuers of all tenants. */
export function isTemplate(issuer: string): boolean {
  return issuer.includes(TENANT)
}

/** Where its keys are found (OpenID Connect Discovery 1.0, section 4); Microsoft has those of all tenants under `common`. */
export function discoveryUrlOf(issuer: string): string {
  return `${canonical(issuer).replace(TENANT, 'common').replace(/\/$/, '')}/.well-known/openid-configuration`
}

/** Whether two texts name one issuer, to the letter but for Google's two spellings. */
export function isSameIssuer(one: unknown, other: string): boolean {
  return typeof one === 'string' && canonical(one) === canonical(other)
}

/**
 * The issuer that claims name: under one spelling, and the tenant's own where `issuer` is a template. Undefined for
 * any other issuer.
 */
export function claimedIssuer(
  issuer: string,
  { iss, tid }: Readonly<Record<string, unknown>>,
): string | undefined {
  const expected = filledIn(issuer, tid)
  return expected !== undefined && isSameIssuer(iss, expected) ? canonical(expected) : undefined
}

function filledIn(issuer: string, tid: unknown): string | undefined {
  if (!isTemplate(issuer)) return issuer
  // A tenant's name may be given to another tenant; its id is its own.
  return typeof tid === 'string' && GUID.test(tid) ? issuer.replace(TENANT, tid) : undefined
}

function canonical(issuer: string): string {
  return issuer === GOOGLE_SHORT ? `https://${GOOGLE_SHORT}` : issuer
}

const GOOGLE_SHORT = 'accounts.google.com'
const TENANT = '{tenantid}'
/** In lower case, as Microsoft writes them: one spelling for one tenant. */
const GUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
