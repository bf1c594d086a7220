/**
 * Notes each function of the project that begins to run in this process, with its callers. V8's debugger does it: each
 * function gets a breakpoint at its start whose condition makes the note and is false, so nothing ever halts.
 */

import { type Debugger, type Profiler, Session } from 'node:inspector/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { PROJECT_ROOT } from './vectors.ts'

/** A function that begins to run. */
export interface Step {
  /** The source file, such as `src/errors.ts`. */
  readonly file: string
  /** Empty for a closure without a name. */
  readonly name: string
  /** The project's functions that wait for it, the nearest first: those that called it, then those that await it. */
  readonly callers: readonly Caller[]
}

export interface Caller {
  readonly file: string
  /** Where in the compiled file the call is made. */
  readonly place: string
}

export class FunctionTrace {
  readonly #session = new Session()
  readonly #onStep: (step: Step) => void

  /** Open it before the project's files are loaded: V8 then knows where each function begins. */
  static async open(onStep: (step: Step) => void): Promise<FunctionTrace> {
    const trace = new FunctionTrace(onStep)
    trace.#session.connect()
    await trace.#session.post('Profiler.enable')
    await trace.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
    return trace
  }

  private constructor(onStep: (step: Step) => void) {
    this.#onStep = onStep
  }

  /** Begins to note calls. A function is known once the one around it has run. */
  async start(): Promise<void> {
    const { result } = await this.#session.post('Profiler.takePreciseCoverage')
    await this.#session.post('Profiler.stopPreciseCoverage')
    await this.#session.post('Debugger.enable')
    const noted: Pick<Step, 'file' | 'name'>[] = []
    Object.assign(globalThis, { [NOTE]: (at: number) => this.#note(noted[at]!) })
    for (const script of result) {
      const file = sourceOf(script.url)
      if (file === undefined) continue
      for (const { name, start } of await this.#functionsOf(script)) {
        const condition = `${NOTE}(${noted.length})`
        noted.push({ file, name })
        await this.#session.post('Debugger.setBreakpoint', { location: start, condition })
      }
    }
  }

  async #functionsOf({ scriptId, functions }: Profiler.ScriptCoverage) {
    const { scriptSource } = await this.#session.post('Debugger.getScriptSource', { scriptId })
    const lineStarts = [0, ...Array.from(scriptSource.matchAll(/\n/g), ({ index }) => index + 1)]
    const locationOf = (offset: number): Debugger.Location => {
      const lineNumber = lineStarts.findLastIndex(start => start <= offset)
      return { scriptId, lineNumber, columnNumber: offset - lineStarts[lineNumber]! }
    }
    const found: { readonly name: string; readonly start: Debugger.Location }[] = []
    for (const { functionName, ranges } of functions) {
      const { startOffset, endOffset } = ranges[0]!
      const isWholeFile = startOffset === 0
      if (isWholeFile) continue
      const { locations } = await this.#session.post('Debugger.getPossibleBreakpoints', {
        start: locationOf(startOffset),
        end: locationOf(endOffset),
        restrictToFunction: true,
      })
      // Initializers of members that V8 makes by itself have no place to break at.
      if (locations[0] !== undefined) found.push({ name: functionName, start: locations[0] })
    }
    return found
  }

  #note({ file, name }: Pick<Step, 'file' | 'name'>): false {
    const [, ...callers] = projectCallers()
    this.#onStep({ file, name, callers })
    return false
  }
}

/** The project's functions on the stack, the innermost first. */
function projectCallers(): Caller[] {
  const { prepareStackTrace, stackTraceLimit } = Error
  Error.stackTraceLimit = Number.POSITIVE_INFINITY
  Error.prepareStackTrace = (_, sites) =>
    sites.flatMap(site => {
      const file = sourceOf(site.getFileName() ?? '')
      return file === undefined
        ? []
        : [{ file, place: `${file}:${site.getLineNumber()}:${site.getColumnNumber()}` }]
    })
  const callers = new Error().stack as unknown as Caller[]
  Object.assign(Error, { prepareStackTrace, stackTraceLimit })
  return callers
}

/** The source of a built file; undefined for files that are not the server's own. */
function sourceOf(url: string): string | undefined {
  if (!url.startsWith(BUILT)) return undefined
  const file = url.slice(BUILT.length)
  return /^(?:src|actors)\//.test(file) ? file.replace(/\.js$/, '.ts') : undefined
}

const BUILT = `${pathToFileURL(join(PROJECT_ROOT, 'dist'))}/`
const NOTE = '__noteFunction'
