/**
 * The simulator as the development console runs it: a program of its own (`dist/scripts/simulate.js`), started with the
 * first command. Commands go to its standard input and its state comes from its standard output, a line of JSON each.
 * It ends when its standard input does, so that it does not outlive the server however that ends.
 */

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { StringDecoder } from 'node:string_decoder'
import { SignalError } from '../../errors.ts'
import type { HttpRoute } from '../../transport/route.ts'
import { jsonAnswer } from '../page-route.ts'
import type { SimulatorCommand, SimulatorState } from './events.ts'
import { parseSimulatorCommand } from './simulator-command.ts'

export interface SimulatorProgram {
  /** A module for Node.js, and its arguments. */
  readonly file: string
  readonly args: readonly string[]
}

interface Run {
  readonly child: ChildProcessWithoutNullStreams
  state: SimulatorState
  /** The start of a line that has not ended yet. */
  line: string
  /** The end of what it said of faults. */
  complaint: string
  isToldToStop: boolean
}

export class Simulator {
  readonly #onChanged: () => void
  #run: Run | undefined
  #trouble: string | undefined
  #hasEnded = false

  /** `onChanged` is called when it has said something, or is gone. */
  constructor(onChanged: () => void = () => undefined) {
    this.#onChanged = onChanged
  }

  /** As it said last; undefined while there is none. */
  get state(): SimulatorState | undefined {
    return this.#run?.state
  }

  /** Why the last simulator died, unless it was stopped. */
  get trouble(): string | undefined {
    return this.#trouble
  }

  route(program: () => SimulatorProgram): HttpRoute {
    const handle: HttpRoute['handle'] = ({ body }) =>
      jsonAnswer(202, JSON.stringify(this.command(parseSimulatorCommand(body), program())))
    return { method: 'POST', path: '/dev/simulator', handle }
  }

  /** Starts the program when none is running. Throws `OVERLOADED` when it does not read what it was told before. */
  command(command: SimulatorCommand, program: SimulatorProgram): SimulatorState {
    if (this.#hasEnded) throw new SignalError('OVERLOADED', 'the server is stopping')
    if (this.#run === undefined && command.kind === 'stop') return IDLE
    const run = this.#run ?? this.#start(program)
    if (run.child.stdin.writableLength > UNREAD_BYTES_MAX) {
      throw new SignalError('OVERLOADED', 'the simulator does not read its commands')
    }
    run.isToldToStop = command.kind === 'stop'
    run.child.stdin.write(`${JSON.stringify(command)}\n`)
    return run.state
  }

  /** Ends the program, and starts none any more. */
  end(): void {
    this.#hasEnded = true
    if (this.#run === undefined) return
    this.#run.isToldToStop = true
    // It has nothing to lose: its people vanish like phones with an empty battery.
    this.#run.child.kill('SIGKILL')
  }

  #start({ file, args }: SimulatorProgram): Run {
    // Not the server's secrets.
    const { PATH, HOME, NODE_EXTRA_CA_CERTS, CALLSIGN_CHROMIUM } = process.env
    const env = { PATH, HOME, NODE_EXTRA_CA_CERTS, CALLSIGN_CHROMIUM }
    const child = spawn(process.execPath, [file, ...args], { stdio: 'pipe', env })
    const run: Run = { child, state: IDLE, line: '', complaint: '', isToldToStop: false }
    this.#run = run
    this.#trouble = undefined
    const decoder = new StringDecoder('utf8')
    child.stdout.on('data', (bytes: Buffer) => this.#onText(run, decoder.write(bytes)))
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      // The error comes first, its stack after it.
      run.complaint = (run.complaint + text).slice(0, COMPLAINT_CHARS_MAX)
    })
    // Its exit reports a closed pipe.
    child.stdin.on('error', () => undefined)
    child.once('error', error => this.#onEnd(run, error.message))
    child.once('close', (code, signal) => this.#onEnd(run, `it ended with ${code ?? signal}`))
    return run
  }

  #onText(run: Run, text: string): void {
    const lines = (run.line + text).split('\n')
    run.line = lines.pop() ?? ''
    if (run.line.length > LINE_CHARS_MAX || lines.some(line => line.length > LINE_CHARS_MAX)) {
      return this.#giveUp(run, `it said a line of more than ${LINE_CHARS_MAX} characters`)
    }
    const said = lines.filter(line => line !== '').at(-1)
    if (said === undefined) return
    const state = stateOf(said)
    if (state === undefined) this.#giveUp(run, 'it said what is no state')
    else {
      run.state = state
      this.#onChanged()
    }
  }

  #giveUp(run: Run, reason: string): void {
    run.child.kill('SIGKILL')
    this.#onEnd(run, reason)
  }

  #onEnd(run: Run, reason: string): void {
    if (this.#run !== run) return
    this.#run = undefined
    if (!run.isToldToStop) {
      const complaint = run.complaint.trim()
      this.#trouble = `the simulator is gone: ${reason}${complaint === '' ? '' : `; ${complaint}`}`
    }
    this.#onChanged()
  }
}

/** Undefined for any other line. The program is ours, so the state's members are not checked. */
function stateOf(line: string): SimulatorState | undefined {
  try {
    const { people, calls, ...rest } = JSON.parse(line)
    return Array.isArray(people) && typeof calls === 'object' && calls !== null
      ? { people, calls, ...rest }
      : undefined
  } catch {
    return undefined
  }
}

const IDLE: SimulatorState = { people: [], calls: { started: 0, answered: 0, ended: 0, failed: 0 } }
/** A thousand people have 200 kB. */
const LINE_CHARS_MAX = 2_000_000
const UNREAD_BYTES_MAX = 64 * 1024
const COMPLAINT_CHARS_MAX = 1_000
