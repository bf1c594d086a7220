/**
 * Whether a load client is what limits: how fast it is beside bare uWebSockets.js, which does least, is said before
 * anything is measured, and wherever it keeps its core busy a figure may be its own rather than the server's.
 */

import type { Parameters } from './benchmark.ts'
import { rounded } from './statistics.ts'

/** Says what the client gets out of the bare server. `what` names the load, `rate` has its unit. */
export function sayClientBesideLimit(
  what: string,
  rate: string,
  { clientCores, serverCores }: { readonly clientCores: number; readonly serverCores: number },
): void {
  process.stderr.write(
    `${what}: the load client takes ${rate} from bare uWebSockets.js with ${clientCores.toFixed(2)} cores of its own, ${serverCores.toFixed(2)} of the server\n`,
  )
}

/**
 * Details of a round: the cores that the client kept busy with each side, and the sides with nearly a whole core. It
 * warns of these once for each `what`.
 */
export function clientDetails(
  what: string,
  cores: readonly (readonly [side: string, busy: number])[],
): Parameters {
  const full = cores.filter(([, busy]) => busy >= CORES_FULL).map(([side]) => side)
  if (full.length > 0 && !warned.has(what)) {
    warned.add(what)
    process.stderr.write(
      `warning: ${what}: the load client is full with ${full.join(', ')}: the figure may be the client's own\n`,
    )
  }
  return {
    ...Object.fromEntries(cores.map(([side, busy]) => [`${side}ClientCores`, rounded(busy)])),
    ...(full.length === 0 ? {} : { clientIsFullWith: full.join(', ') }),
  }
}

const warned = new Set<string>()
const CORES_FULL = 0.9
