/**
 * What a program did to a file and to its sockets, in the order in which it happened, as strace saw it. Each system call
 * has a place for its begin and one for its end: lines of the trace, which strace writes as the calls begin and return.
 *
 * A write is durable once a sync that began after it has returned; a write by a descriptor opened with O_DSYNC, once it
 * has returned itself.
 */

import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'

export interface SystemCall {
  readonly name: string
  /** The descriptor among its arguments, and what that stands for: a path, or `TCP:[from->to]`. */
  readonly descriptor: number | undefined
  readonly target: string
  /** The returned descriptor's file or socket. */
  readonly opened: string
  /** As strace wrote them, strings in hexadecimal. */
  readonly args: string
  readonly result: number
  readonly begin: number
  readonly end: number
  /** When it began, seconds. */
  readonly atS: number
}

export type DiskEvent = DiskWrite | { readonly kind: 'sync'; readonly begin: number; readonly end: number }

export interface DiskWrite {
  readonly kind: 'write'
  readonly begin: number
  readonly end: number
  readonly offset: number
  readonly bytes: Buffer
  /** Durable when it returns. */
  readonly isSynced: boolean
}

/** Why nothing can be traced here, or false. */
export function cannotTrace(): string | false {
  if (!existsSync(STRACE)) return `needs the Debian package strace: ${STRACE} not found`
  try {
    execFileSync(STRACE, ['-f', '--seccomp-bpf', '-o', '/dev/null', '/bin/true'], { stdio: 'ignore' })
    return false
  } catch {
    return 'strace is not allowed to trace here'
  }
}

export interface TraceOptions {
  /** The file for the trace. */
  readonly to: string
  /** How many bytes of each write and read to keep; left out: traces only syncs. */
  readonly stringBytes?: number
  /** How long each fdatasync takes before it begins to work. */
  readonly syncDelayMs?: number
}

/** The command under which a program is traced; the program keeps its process id. */
export function traceCommand({ to, stringBytes, syncDelayMs }: TraceOptions): readonly string[] {
  const delay = syncDelayMs === undefined ? [] : ['-e', `inject=fdatasync:delay_enter=${syncDelayMs * 1000}`]
  return [
    STRACE,
    '-D',
    '-f',
    '--seccomp-bpf',
    '-ttt',
    '-yy',
    '-xx',
    '-s',
    `${stringBytes ?? 0}`,
    '-e',
    'signal=none',
    '-e',
    `trace=${(stringBytes === undefined ? ['fdatasync'] : TRACED).join(',')}`,
    ...delay,
    '-o',
    to,
  ]
}

/** A disk that fails: which system calls on which file, with what, and when. */
export interface DiskFault {
  /** The file for the trace. */
  readonly to: string
  readonly path: string
  readonly calls: readonly string[]
  readonly error: string
  /** In strace's form, such as `13+9`: in each thread the thirteenth call, and every ninth after it. */
  readonly when: string
}

/** The command under which a program has a disk that fails so; the program keeps its process id. */
export function faultCommand({ to, path, calls, error, when }: DiskFault): readonly string[] {
  return [
    STRACE,
    '-D',
    '-f',
    '--seccomp-bpf',
    '-e',
    'signal=none',
    '-P',
    path,
    '-e',
    `trace=${calls.join(',')}`,
    '-e',
    `inject=${calls.join(',')}:error=${error}:when=${when}`,
    '-o',
    to,
  ]
}

/** The threads whose calls failed by such a fault: one for each call. */
export function faultsIn(trace: string): readonly string[] {
  return [...readFileSync(trace, 'latin1').matchAll(/^(\d+) .*\(INJECTED\)$/gm)].map(([, thread]) => thread!)
}

/** The calls of a trace whose program has ended, in the order in which they began. */
export function readTrace(path: string): SystemCall[] {
  const calls: SystemCall[] = []
  const unfinished = new Map<
    string,
    { readonly begin: number; readonly atS: number; readonly text: string }
  >()
  for (const [at, line] of readFileSync(path, 'latin1').split('\n').entries()) {
    const [, pid = '', seconds = '', text = ''] = LINE.exec(line) ?? []
    const resumed = RESUMED.exec(text)
    const {
      begin,
      atS,
      text: head,
    } = (resumed && unfinished.get(pid)) || {
      begin: at,
      atS: Number(seconds),
      text: '',
    }
    if (resumed !== null) unfinished.delete(pid)
    const whole = head + text.slice(resumed?.[0].length ?? 0)
    if (whole.endsWith(UNFINISHED)) {
      unfinished.set(pid, { begin, atS, text: whole.slice(0, -UNFINISHED.length) })
      continue
    }
    const call = parseCall(whole)
    if (call !== undefined) calls.push({ ...call, begin, end: at, atS })
  }
  return calls.sort((one, other) => one.begin - other.begin)
}

/** The strings among the arguments of a call. */
export function stringsOf({ args }: SystemCall): Buffer[] {
  return [...args.matchAll(STRING)].map(([, text = '']) => fromHex(text))
}

/** Everything that was done to the file of that path. Throws for what this can't follow. */
export function diskEvents(calls: readonly SystemCall[], path: string): DiskEvent[] {
  const dsync = new Set<number>()
  const positions = new Map<number, number>()
  return calls.flatMap((call): DiskEvent[] => {
    const { name, descriptor = -1, begin, end, result } = call
    if (name === 'openat' && call.opened === path) {
      if (/\bO_D?SYNC\b/.test(call.args)) dsync.add(result)
      else dsync.delete(result)
      positions.set(result, 0)
    }
    if (call.target !== path || result < 0) return []
    switch (name) {
      case 'lseek':
        positions.set(descriptor, result)
        return []
      case 'fdatasync':
      case 'fsync':
        return [{ kind: 'sync', begin, end }]
      case 'pwrite64':
      case 'pwritev': {
        const offset = Number(/, (\d+)$/.exec(call.args)?.[1])
        return [writeOf(call, offset, dsync.has(descriptor))]
      }
      case 'write':
      case 'writev': {
        const offset = positions.get(descriptor) ?? 0
        positions.set(descriptor, offset + result)
        return [writeOf(call, offset, dsync.has(descriptor))]
      }
      case 'mmap':
        if (!/PROT_WRITE[^,]*, MAP_SHARED/.test(call.args)) return []
    }
    throw new Error(`the trace has a ${name} of ${path}`)
  })
}

/** For each write, in order, the place at which it is durable; infinite when it never is. */
export function durablePlaces(events: readonly DiskEvent[]): ReadonlyMap<DiskWrite, number> {
  const places = new Map<DiskWrite, number>()
  const syncs = events.filter(event => event.kind === 'sync')
  for (const write of events) {
    if (write.kind !== 'write') continue
    const covering = syncs.filter(({ begin }) => begin > write.end).map(({ end }) => end)
    places.set(write, write.isSynced ? write.end : Math.min(Number.POSITIVE_INFINITY, ...covering))
  }
  return places
}

function parseCall(text: string): Omit<SystemCall, 'begin' | 'end' | 'atS'> | undefined {
  const [, name, args = '', result, opened = ''] = CALL.exec(text) ?? []
  if (name === undefined) return undefined
  const [, descriptor, target = ''] = (name === 'mmap' ? LATER_DESCRIPTOR : DESCRIPTOR).exec(args) ?? []
  return {
    name,
    descriptor: descriptor === undefined ? undefined : Number(descriptor),
    target: named(target),
    opened: named(opened),
    args,
    result: Number(result),
  }
}

function named(target: string): string {
  return target.startsWith('\\x') ? fromHex(target).toString() : target
}

function writeOf(call: SystemCall, offset: number, isSynced: boolean): DiskWrite {
  const { begin, end, result } = call
  return {
    kind: 'write',
    begin,
    end,
    offset,
    bytes: Buffer.concat(stringsOf(call)).subarray(0, result),
    isSynced,
  }
}

function fromHex(text: string): Buffer {
  return Buffer.from(text.replaceAll('\\x', ''), 'hex')
}

const STRACE = '/usr/bin/strace'
const TRACED = [
  'openat',
  'lseek',
  'pwrite64',
  'pwritev',
  'pwritev2',
  'write',
  'writev',
  'sendto',
  'sendmsg',
  'read',
  'recvfrom',
  'fdatasync',
  'fsync',
  'sync_file_range',
  'ftruncate',
  'fallocate',
  'msync',
  'mmap',
]
const LINE = /^(\d+) +(\d+\.\d+) (.*)$/s
const RESUMED = /^<\.\.\. \w+ resumed>/
const UNFINISHED = ' <unfinished ...>'
const CALL = /^(\w+)\((.*)\) += (-?\d+)(?:<([^>]*)>)?[^"]*$/s
const DESCRIPTOR = /^(\d+)<((?:[^>]|->)*)>/
const LATER_DESCRIPTOR = /, (\d+)<([^>]*)>/
const STRING = /"([^"]*)"/g
