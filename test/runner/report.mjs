/** Reads the TAP 14 of one test process and keeps what a person needs of it. */

const FAILURE_LINES_MAX = 40
/** Marks the file that the following tests are of, where one process runs several (`folder.mjs`). */
export const FILE_MARK = 'file: '
/** Reasons for which a size skips a test of the other one (`test/support/size.ts`). */
const OTHER_SIZE = ['long size', 'filter: only']

export class Report {
  /** The tests that the last line is in, outermost first, with the number of failures before each. */
  #open = []
  #failures = []
  /** Set while the details of a failure are read. */
  #details
  #file
  /** Lines to print at once: the result of the process, and each skipped test with its reason. */
  lines = []
  /** `other`: tests of the other size. */
  counts = { pass: 0, fail: 0, skip: 0, other: 0 }

  get failures() {
    return this.#failures.map(lines => lines.join('\n'))
  }

  read(line) {
    const text = line.trimStart()
    const indent = line.length - text.length
    if (this.#details !== undefined && this.#isDetail(text, indent)) return
    if (text.startsWith(`# ${FILE_MARK}`)) this.#file = text.slice(2 + FILE_MARK.length)
    const title = /^# Subtest: (.*)$/.exec(text)?.[1]
    if (title !== undefined) this.#open[indent / 4] = { title, failuresBefore: this.#failures.length }
    const result = /^(not )?ok \d+(?: - (.*))?$/.exec(text)
    if (result !== null) this.#onResult(result[1] === undefined, result[2] ?? '', indent / 4)
  }

  #onResult(passed, title, depth) {
    const ended = this.#open[depth]
    const above = this.#open.slice(0, depth).map(test => test.title)
    if (this.#file !== undefined && depth > 0) above.splice(1, 0, this.#file)
    this.#open.length = depth
    if (depth === 0) this.lines.push(`${passed ? 'ok' : 'not ok'}  ${title.replace(' # time=', '  ')}`)
    const skipped = / # SKIP\s*(.*)$/i.exec(title)
    if (skipped !== null) {
      this.#onSkipped([...above, title.slice(0, skipped.index)].join(' > '), skipped[1])
      return
    }
    // A test fails with what it holds, which was told; or by itself, such as for a plan that was not kept.
    if (ended !== undefined && (passed || this.#failures.length > ended.failuresBefore)) return
    this.counts[passed ? 'pass' : 'fail']++
    if (passed) return
    const lines = [`FAILED  ${[...above, title.replace(/ # time=.*/, '')].join(' > ')}`]
    this.#failures.push(lines)
    this.#details = { lines, indent: depth * 4, isLeftOut: false }
  }

  #onSkipped(title, reason) {
    if (OTHER_SIZE.includes(reason)) {
      this.counts.other++
      return
    }
    this.counts.skip++
    this.lines.push(`skipped  ${title}: ${reason}`)
  }

  /** Whether the line belongs to the YAML details. The code around the failure is left out. */
  #isDetail(text, indent) {
    const { lines } = this.#details
    if (text === '---') return true
    if (text === '...' || (text !== '' && indent <= this.#details.indent)) {
      this.#details = undefined
      return text === '...'
    }
    if (indent === this.#details.indent + 2) this.#details.isLeftOut = /^(?:source|at|tapCaught):/.test(text)
    if (!this.#details.isLeftOut && lines.length < FAILURE_LINES_MAX)
      lines.push(' '.repeat(Math.max(0, indent - this.#details.indent)) + text)
    return true
  }
}
