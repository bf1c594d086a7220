/** Whether the nodes are a cluster that may be made to fail: one log, and not in production. */

import { hasCode } from '../../src/app/callsign-error.ts'
import type { PublishedKeys } from '../../src/client/client.ts'
import { serverAt } from './cluster-fetch.ts'
import type { ClusterWatch } from './cluster-watch.ts'
import type { NodeAddresses, Settings } from './settings.ts'

/** Drills can't begin here; the message says why. */
export class Unfit extends Error {}

export interface LogOfCluster extends PublishedKeys {
  readonly origin: string
}

/** The log that all nodes name. Throws `Unfit`. */
export async function readLogOf(nodes: readonly NodeAddresses[]): Promise<LogOfCluster> {
  const logs = await Promise.all(nodes.map(readLog))
  const [first] = logs
  for (const [at, { origin, vkey, vrfPublicKey }] of logs.entries()) {
    if (origin !== first!.origin || vkey !== first!.vkey || vrfPublicKey !== first!.vrfPublicKey) {
      throw new Unfit(`${nodes[0]!.name} and ${nodes[at]!.name} have different logs`)
    }
  }
  return first!
}

/**
 * Throws `Unfit` unless all nodes answer as nodes of one cluster, and the cluster is on this machine and without clients
 * or its log's name was given.
 */
export async function assertStaging(
  { nodes, stagingOrigin }: Settings,
  watch: ClusterWatch,
  origin: string,
): Promise<void> {
  const areThere = await watch.until(
    () => watch.nodes.every(({ state }) => state !== undefined),
    ANSWER_MS_MAX,
  )
  if (!areThere) {
    const { name, addresses } = watch.nodes.find(({ state }) => state === undefined)!
    throw new Unfit(`${name} does not answer at ${addresses.operatorsUrl} as a node of several`)
  }
  if (stagingOrigin === origin) return
  if (stagingOrigin !== undefined) throw new Unfit(`--staging ${stagingOrigin} is not the log of these nodes`)
  const reasons = [
    ...nodes.filter(({ url }) => !isLoopback(url)).map(({ name, url }) => `${name} is at ${url}`),
    ...watch.nodes
      .filter(({ state }) => state!.connections > 0)
      .map(({ name, state }) => `${name} has ${state!.connections} connections`),
  ]
  if (reasons.length === 0) return
  throw new Unfit(
    `this may be production: ${reasons.join(', ')}. To let these nodes fail, name their log: --staging CALLSIGN_ORIGIN`,
  )
}

async function readLog(node: NodeAddresses): Promise<LogOfCluster> {
  const { name, url } = node
  try {
    const { log } = await serverAt(node).request('GET meta', undefined)
    const { origin, vkey, vrfPublicKey } = log
    if ([origin, vkey, vrfPublicKey].every(each => typeof each === 'string')) {
      return { origin, vkey, vrfPublicKey }
    }
  } catch (error) {
    if (hasCode(error, 'NO_ANSWER')) throw new Unfit(`${name} does not answer at ${url}: ${error.message}`)
  }
  throw new Unfit(`${name} at ${url} is no server of this kind`)
}

function isLoopback(url: string): boolean {
  const { hostname } = new URL(url)
  return hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(hostname)
}

const ANSWER_MS_MAX = 5_000
