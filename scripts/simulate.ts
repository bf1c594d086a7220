#!/usr/bin/env node
/** Fake users with real keys for a development server: see `docs/build/development.md`. */

import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseSimulatorCommand } from '../src/operations/console/simulator-command.ts'
import { sentenceOf } from './simulate/phone.ts'
import { formatDeed, formatPeople, formatSecond, formatSummary, StateLines } from './simulate/report.ts'
import { FLAGS, type Load, readSettings, type Settings, USAGE } from './simulate/settings.ts'
import { CannotBegin, Simulation } from './simulate/simulation.ts'
import { runCommand } from './support/command.ts'

const SECOND_MS = 1_000
/** For output still to be written. */
const EXIT_MS = 500

await runCommand({
  name: 'simulate',
  usage: USAGE,
  flags: FLAGS,
  async run(flags) {
    const settings = readSettings(flags)
    try {
      return await simulate(settings)
    } catch (error) {
      if (!(error instanceof CannotBegin)) throw error
      process.stderr.write(`simulate: ${error.message}\n`)
      return 2
    }
  },
})
// Pauses of people who are gone are nothing to wait for.
setTimeout(() => process.exit(), EXIT_MS).unref()

async function simulate(settings: Settings): Promise<number> {
  const { isJson, isControlled, load, url, pace, callsYouAfterMs, media } = settings
  let lines: StateLines | undefined
  const simulation = await Simulation.open({
    ...{ url, pace, callsYouAfterMs, media },
    onDeed: (name, deed) => void (isJson || say(formatDeed(name, deed))),
    onTrouble: sentence => void process.stderr.write(`simulate: ${sentence}\n`),
    onChange: () => lines?.onChange(),
  })
  const stop = stopSignal()
  if (isJson) lines = new StateLines(simulation, say)
  const hasBegun = load === undefined ? await welcomePeople(simulation, settings) : true
  if (isControlled) obey(simulation, stop)
  else if (load === undefined && process.stdin.isTTY) beCalled(simulation, stop)
  if (load !== undefined) await playLoad(simulation, load, isJson, stop.signal)
  else if (hasBegun) await aborted(stop.signal)
  await simulation.close()
  lines?.stop()
  if (!hasBegun) return 2
  return load !== undefined && simulation.state.calls.failed > 0 ? 1 : 0
}

/** Resolves with whether they are there, and have asked for what they were to ask. */
async function welcomePeople(simulation: Simulation, settings: Settings): Promise<boolean> {
  const { behaviours, shareToken, isJson } = settings
  if (behaviours.length === 0) return true
  await simulation.carryOut({ kind: 'people', behaviours })
  if (simulation.people.length < behaviours.length) return false
  if (!isJson) say(formatPeople(simulation.people))
  return shareToken === undefined || simulation.carryOut({ kind: 'befriend', shareToken })
}

/** Resolves when the time has run out, or on a stop, and all calls have ended. */
async function playLoad(
  simulation: Simulation,
  load: Load,
  isJson: boolean,
  stop: AbortSignal,
): Promise<void> {
  const { users, callsPerSecond, ms } = load
  await simulation.carryOut({ kind: 'load', users, callsPerSecond })
  const { crowd } = simulation
  if (crowd === undefined) return simulation.onCount('failed')
  const startMs = performance.now()
  const timer = setInterval(() => {
    const seconds = Math.round((performance.now() - startMs) / SECOND_MS)
    if (!isJson) say(formatSecond(seconds, crowd))
  }, SECOND_MS)
  await Promise.race([aborted(stop), ...(ms === undefined ? [] : [sleep(ms, undefined, { ref: false })])])
  await simulation.end()
  clearInterval(timer)
  if (!isJson) say(formatSummary(crowd))
}

/** Lines of JSON; a line that is no command is reported. Ends with its input. */
function obey(simulation: Simulation, stop: AbortController): void {
  const input = createInterface({ input: process.stdin })
  // One after the other: the person who befriends is made first.
  let last: Promise<unknown> = Promise.resolve()
  input.on('line', line => {
    if (line.trim() === '') return
    try {
      const command = parseSimulatorCommand(Buffer.from(line))
      last = last.then(() => simulation.carryOut(command))
    } catch (error) {
      simulation.onTrouble(`no command: ${sentenceOf(error)}`)
    }
  })
  input.once('close', () => stop.abort())
}

/** At a terminal: the caller's number. */
function beCalled(simulation: Simulation, stop: AbortController): void {
  const input = createInterface({ input: process.stdin })
  input.on('line', line => {
    const [, number, video] = /^\s*(\d+)\s*(v?)\s*$/i.exec(line) ?? []
    const person = simulation.people[Number(number) - 1]
    if (person === undefined) return say(`There are 1 to ${simulation.people.length}.\n`)
    simulation.callYou(person, video !== '').catch(error => say(`${sentenceOf(error)}\n`))
  })
  input.once('close', () => stop.abort())
  stop.signal.addEventListener('abort', () => input.close())
}

function stopSignal(): AbortController {
  const stop = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop.abort())
  return stop
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

function say(text: string): void {
  process.stdout.write(text)
}
