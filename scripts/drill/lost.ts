/** Looks for everything acknowledged: calls, keys and messages, at every node, and one log for all of them. */

import { setTimeout as sleep } from 'node:timers/promises'
import type { LogClient, LookupOutcome, SignedCheckpoint } from '../../src/client/client.ts'
import type { DrillCall, Load } from './load.ts'
import type { RegisteredKey } from './registrar.ts'
import type { NodeAddresses } from './settings.ts'

/** The fault in a node's answer about a call with an acknowledged start. Undefined when the answer is right. */
export function faultOfCall(callId: string, outcome: string, isEnded: boolean): string | undefined {
  const isRight = isEnded ? outcome === '410 CALL_ENDED' : /^200|CALL_ENDED/.test(outcome)
  return isRight ? undefined : `call ${callId} answers ${outcome}, ended: ${isEnded}`
}

/** Undefined when it proves this key. */
export function faultOfLookup(outcome: LookupOutcome, key: RegisteredKey): string | undefined {
  if (outcome.kind !== 'verified') return outcome.detail
  return outcome.publicKey === key.publicKey ? undefined : 'another key is in the log'
}

export async function lostCalls(
  nodes: readonly NodeAddresses[],
  calls: readonly DrillCall[],
): Promise<string[]> {
  const faults: string[] = []
  for (const node of nodes) {
    for (const { callId, caller, isEnded } of calls) {
      const ask = () => caller.outcomeAt(node, 'GET call/{callId}', { callId })
      const outcome = await untilAnswered(ask, text => /^(?!5)\d/.test(text))
      const fault = faultOfCall(callId, outcome, isEnded)
      if (fault !== undefined) faults.push(`${fault}, at ${node.name}`)
    }
  }
  return faults
}

/** Keys that a node does not prove. */
export async function lostKeys(
  logs: ReadonlyMap<string, LogClient>,
  keys: readonly RegisteredKey[],
): Promise<string[]> {
  const faults = [...logs].map(async ([node, log]) => {
    const outcomes: LookupOutcome[] = []
    for (let from = 0; from < keys.length; from += LOOKUPS_AT_ONCE) {
      const some = keys.slice(from, from + LOOKUPS_AT_ONCE)
      outcomes.push(
        ...(await untilAnswered(
          () => log.lookUpAll(some),
          all => all.every(isAnswered),
        )),
      )
    }
    return keys.flatMap((key, at) => {
      const fault = faultOfLookup(outcomes[at]!, key)
      return fault === undefined ? [] : [`key of ${key.userId}_${key.deviceId} at ${node}: ${fault}`]
    })
  })
  return (await Promise.all(faults)).flat()
}

/** Messages that do not come, came after their acknowledgement, or differ from the sent ones. */
export function lostMessages({ phones, falsified }: Load): string[] {
  return [
    ...phones.flatMap(({ inbox, name }) => inbox.missing.map(each => `${each} does not come to ${name}`)),
    ...phones.flatMap(({ inbox, name }) => inbox.again.map(each => `${each} came again to ${name}`)),
    ...falsified.map(each => `${each} has another key`),
  ]
}

/** A node that does not answer for a moment has lost nothing. */
async function untilAnswered<Outcome>(
  ask: () => Promise<Outcome>,
  hasAnswered: (outcome: Outcome) => boolean,
): Promise<Outcome> {
  const endMs = performance.now() + ANSWER_MS_MAX
  for (;;) {
    const outcome = await ask()
    if (hasAnswered(outcome) || performance.now() > endMs) return outcome
    await sleep(PAUSE_MS)
  }
}

function isAnswered(outcome: { readonly kind: string; readonly status?: number }): boolean {
  return outcome.kind !== 'unanswered' || (outcome.status ?? 503) < 500
}

const ANSWER_MS_MAX = 30_000
const PAUSE_MS = 500
/** A proof keeps this process busy for milliseconds. */
const LOOKUPS_AT_ONCE = 16

export interface LogAtNode {
  readonly node: string
  readonly checkpoint: SignedCheckpoint
}

/** Each node's checkpoint, which fits its earlier ones. A fault is a sentence. */
export async function readLogs(
  logs: ReadonlyMap<string, LogClient>,
): Promise<readonly (LogAtNode | string)[]> {
  return await Promise.all(
    [...logs].map(async ([node, log]) => {
      const seen = await untilAnswered(() => log.refreshCheckpoint(), isAnswered)
      return seen.kind === 'verified'
        ? { node, checkpoint: seen.checkpoint }
        : `the log at ${node}: ${seen.detail}`
    }),
  )
}

/** Checkpoints of all nodes that some node's log does not begin with, or go on from. */
export async function forks(
  logs: ReadonlyMap<string, LogClient>,
  shown: readonly LogAtNode[],
): Promise<string[]> {
  const faults: string[] = []
  for (const [node, log] of logs) {
    for (const { node: from, checkpoint } of shown) {
      const compared = await untilAnswered(() => log.compareWith(checkpoint.note), isAnswered)
      if (compared.kind === 'verified') continue
      const shownBy = `size ${checkpoint.treeSize}, shown by ${from}: ${compared.detail}`
      faults.push(
        compared.kind === 'refused'
          ? `a fork: the log at ${node} does not fit ${shownBy}`
          : `the log at ${node} can't be held against ${shownBy}`,
      )
    }
  }
  return faults
}
