/** Joins the log with the witnesses of its policy. */

import { post } from '../delivery/http-post.ts'
import { messageOf } from '../errors.ts'
import type { FrontLinks } from '../fronts/front-links.ts'
import { KEY_LOG } from '../keyserver/kept-log.ts'
import { WitnessLink, type WitnessPost } from '../keyserver/witness-link.ts'
import { WitnessRounds, type WitnessRoundsDeps } from '../keyserver/witness-rounds.ts'
import type { LogHead } from '../log/checkpoint.ts'
import type { ReadHashes } from '../log/tree.ts'
import { observeWitnesses } from '../operations/figures.ts'
import type { OpenedLog } from './open-log.ts'
import type { WritingProcess } from './process/process.ts'
import { ConfigError } from './settings/config.ts'
import { policyFault, type WitnessConfig } from './settings/witness-settings.ts'

/**
 * Shows the head shown before, and the newest head to the witnesses. Undefined without a policy. Throws `ConfigError` for a
 * policy of another log, and where a witness has cosigned a head that this log doesn't extend.
 */
export async function startWitnessing(
  context: WritingProcess,
  { store, keys, published }: Pick<OpenedLog, 'store' | 'keys' | 'published'>,
  fronts: Pick<FrontLinks, 'announce'>,
  record: ((head: LogHead) => Promise<void>) | undefined,
): Promise<WitnessRounds | undefined> {
  const { config, world, metrics, logger } = context
  const { witnesses: policy, isFrozen } = config.log
  let rounds: WitnessRounds | undefined
  observeWitnesses(metrics, () => rounds?.figures)
  if (policy === undefined) {
    await store.forgetShown()
    return undefined
  }
  const fault = policyFault(policy, keys)
  if (fault !== undefined) throw new ConfigError([fault])
  const opened = openRounds(context, policy, {
    of: KEY_LOG,
    quorum: policy.quorum,
    readHashes: store.readHashes,
    // Fronts that can't ask the writer show what the store keeps: those that can wait for it from before.
    async keep(head) {
      await fronts.announce(head)
      await store.keepShown(head)
    },
  })
  rounds = opened
  const head = store.head()!
  if (!store.keepsShown) {
    // Without witnesses it was shown as it is.
    await record?.(head)
    await store.keepShown(head)
  }
  published.publish(store.shownHead()!)
  await opened.begin(head).catch(error => {
    // A frozen log signs nothing, so an older copy may be shown.
    if (!isFrozen) throw error
    logger.error({ event: 'witness-conflict', reason: messageOf(error) })
  })
  world.every(BEAT_MS, () => opened.beat())
  return opened
}

/** Rounds in which the policy's witnesses cosign this log. */
export function openRounds(
  { world, logger }: Pick<WritingProcess, 'world' | 'logger'>,
  { witnesses }: WitnessConfig,
  log: Pick<WitnessRoundsDeps, 'of' | 'quorum' | 'keep'> & { readonly readHashes: ReadHashes },
): WitnessRounds {
  const { nowMs, monotonicMs, random } = world
  const { readHashes, ...cosigned } = log
  const links = witnesses.map(witness => new WitnessLink(witness, ask, readHashes, monotonicMs))
  const named = log.of === KEY_LOG ? {} : { log: log.of.what }
  return new WitnessRounds({
    ...cosigned,
    links,
    nowMs,
    monotonicMs,
    random,
    report: event => logger[LEVELS[event.event]]({ ...event, ...named }),
  })
}

const ask: WitnessPost = async (url, body, timeoutMs) => {
  const headers = { 'content-type': 'text/plain; charset=utf-8' }
  const bounds = { timeoutMs, answerBytesMax: ANSWER_BYTES_MAX }
  const answer = await post({ url, headers, body, ...bounds, keepsConnection: true })
  return answer.kind === 'answered' ? answer : { kind: 'failed', reason: NO_ANSWER[answer.reason] }
}

const LEVELS = {
  'witness-failed': 'warn',
  'witness-answers': 'info',
  'witness-clock': 'warn',
  'witness-quorum-missing': 'error',
  'witness-quorum': 'info',
  'witness-conflict': 'error',
  'witness-round-failed': 'error',
} as const
const NO_ANSWER = {
  timeout: 'no answer in time',
  network: 'can’t be reached',
  'address-not-public': 'is not at a public address',
  'address-not-allowed': 'is at an address that is not allowed',
} as const
/** A line, or three of the largest signatures. */
const ANSWER_BYTES_MAX = 10_240
const BEAT_MS = 15_000
