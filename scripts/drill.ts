#!/usr/bin/env node

/** Lets nodes of a staging cluster fail under load, and says in a line each whether the promises hold: `drill`. */

import { CallsignError } from '../src/app/callsign-error.ts'
import { ClusterWatch } from './drill/cluster-watch.ts'
import { Drills } from './drill/drills.ts'
import { formatFinding, formatJson } from './drill/finding.ts'
import { Load } from './drill/load.ts'
import { DrillPhone } from './drill/phone.ts'
import { Readers } from './drill/readers.ts'
import { Registrar } from './drill/registrar.ts'
import { FLAGS, readSettings, type Settings, USAGE } from './drill/settings.ts'
import { assertStaging, readLogOf, Unfit } from './drill/target.ts'
import { type Flags, runCommand } from './support/command.ts'

async function drill(flags: Flags): Promise<number> {
  const settings = readSettings(flags)
  const stop = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop.abort())
  try {
    return await runDrills(settings, stop.signal)
  } catch (error) {
    if (!(error instanceof Unfit || error instanceof CallsignError)) throw error
    say(error instanceof CallsignError && error.status === 429 ? RATES : error.message)
    return 2
  } finally {
    stop.abort()
  }
}

async function runDrills(settings: Settings, stop: AbortSignal): Promise<number> {
  const { nodes, identifiers, grpcToken, isJson } = settings
  const watch = new ClusterWatch(nodes, stop)
  const log = await readLogOf(nodes)
  await assertStaging(settings, watch, log.origin)
  const phones: DrillPhone[] = []
  const work = new AbortController()
  const signal = AbortSignal.any([stop, work.signal])
  try {
    for (const [place, login] of identifiers.entries()) {
      phones.push(await DrillPhone.signIn({ nodes, place, login, stop: signal }))
    }
    for (let at = 0; at + 1 < phones.length; at += 2) await phones[at]!.befriend(phones[at + 1]!)
    for (const phone of phones) phone.connect()
    const registrar = await Registrar.open(nodes, grpcToken, say)
    if (registrar === undefined) say('keys are registered by register_device alone, one for each test user')
    const load = new Load(phones, registrar, signal)
    const readers = new Readers(nodes, { load, logKeys: log, stop: signal })
    const drills = new Drills({ settings, nodes, watch, load, readers, logKeys: log, say })
    const format = isJson ? formatJson : formatFinding
    let areAllOk = true
    let isAnyLost = false
    for (const name of settings.drills) {
      for await (const finding of drills.run(name)) {
        process.stdout.write(format(name, finding))
        areAllOk &&= finding.isOk
        isAnyLost ||= !finding.isOk && finding.seconds === undefined
      }
      // The next drill would find the failure of this one. Being late leaves nothing behind.
      if (isAnyLost || stop.aborted) break
    }
    registrar?.close()
    return areAllOk && !stop.aborted ? 0 : 1
  } finally {
    await Promise.race([
      Promise.allSettled(phones.map(phone => phone.leave())),
      new Promise(resolve => setTimeout(resolve, GOODBYE_MS_MAX).unref()),
    ])
    work.abort()
  }
}

function say(sentence: string): void {
  process.stderr.write(`drill: ${sentence}\n`)
}

const RATES =
  'the rates of these users are used up: a test identifier gets five codes an hour and ten devices a day; name other ones'
const GOODBYE_MS_MAX = 5_000
/** For output still to be written. */
const EXIT_MS = 500

await runCommand({ name: 'drill', usage: USAGE, flags: FLAGS, run: drill })
// Pauses and connections of the load are nothing to wait for.
setTimeout(() => process.exit(), EXIT_MS).unref()
