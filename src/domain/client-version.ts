/** `X-Client-Version: ios/1.4.2 (214)` against the oldest versions that are still served (contract 1.4). */

/**
 * A function that returns the minimum, such as `ios/1.4.0`, that a client's version is below; undefined when it is
 * not, when its platform has none, and for what has another form: a client is turned away only for what it says.
 */
export function clientRequirement(
  minimums: readonly string[],
): (clientVersion: string) => string | undefined {
  const parsed = minimums.map(text => ({ text, version: parseClientVersion(text) }))
  return clientVersion => {
    const client = parseClientVersion(clientVersion)
    if (client === undefined) return undefined
    return parsed.find(({ version }) => version !== undefined && isBelow(client, version))?.text
  }
}

interface ClientVersion {
  readonly platform: string
  /** Major, minor, patch. */
  readonly numbers: readonly number[]
}

function parseClientVersion(text: string): ClientVersion | undefined {
  const [, platform, numbers] = FORM.exec(text) ?? []
  if (platform === undefined || numbers === undefined) return undefined
  return { platform: platform.toLowerCase(), numbers: numbers.split('.').map(Number) }
}

function isBelow(client: ClientVersion, minimum: ClientVersion): boolean {
  if (client.platform !== minimum.platform) return false
  for (let at = 0; at < 3; at++) {
    const difference = (client.numbers[at] ?? 0) - (minimum.numbers[at] ?? 0)
    if (difference !== 0) return difference < 0
  }
  return false
}

/** A platform, one to three numbers, and the build in brackets, which does not count. */
const FORM = /^([A-Za-z][A-Za-z0-9-]{0,31})\/(\d{1,9}(?:\.\d{1,9}){0,2})(?: \([^()]{1,32}\))?$/
