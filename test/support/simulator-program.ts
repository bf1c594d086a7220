/**
 * Stands in for the simulator: reads commands, a line of JSON each, and says a state for each one. `befriend` has it do
 * what its share token says, so that a test can have it misbehave. It ends with its standard input.
 *
 * `--hold PORT` connects to a port of this machine for as long as it lives, so that a test sees its end.
 */

import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import type { SimulatorCommand } from '../../src/operations/console/events.ts'

const hold = process.argv.indexOf('--hold')
if (hold > 0) connect(Number(process.argv[hold + 1]), '127.0.0.1')

const said: string[] = []

/** The effect of each share token; `said` when no state is to follow. */
const MISDEEDS: Record<string, () => unknown> = {
  fail() {
    process.stderr.write('something is wrong\n')
    process.exit(3)
  },
  babble() {
    process.stdout.write('this is no state\n')
    return 'said'
  },
  endless() {
    process.stdout.write('x'.repeat(3_000_000))
    return 'said'
  },
  halves: () => process.stdout.write('\n\n'),
}

function onCommand(command: SimulatorCommand): void {
  said.push(command.kind)
  if (command.kind === 'stop') process.exit(0)
  if (command.kind === 'befriend' && MISDEEDS[command.shareToken]?.() === 'said') return
  const people = said.map((kind, at) => ({
    userId: String(at),
    displayName: kind,
    behaviour: 'answer',
    isOnline: true,
    doing: process.argv.slice(2).join(' '),
  }))
  const calls = { started: said.length, answered: 0, ended: 0, failed: 0 }
  process.stdout.write(
    `${JSON.stringify({ people, calls, secrets: process.env.CALLSIGN_SECRET ?? 'none' })}\n`,
  )
}

createInterface({ input: process.stdin })
  .on('line', line => onCommand(JSON.parse(line)))
  .on('close', () => process.exit(0))
