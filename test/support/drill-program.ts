/** `callsign drill` as an operator runs it, with commands that have the test act on nodes of its own. */

import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { CODE, emailOf } from './call-people.ts'
import type { TestNode } from './nodes.ts'
import { type Outcome, runProgram, startedProgram } from './programs.ts'

const IDENTIFIERS = { [emailOf(0)]: CODE, [emailOf(1)]: CODE }
/** How long a node takes is not what these tests are about. */
export const PATIENT = ['--writer-within', '60', '--pace-within', '2', '--back-within', '120']

export interface Line {
  readonly drill: string
  readonly check: string
  readonly ok: boolean
  readonly detail: string
}

export type DrillOutcome = Outcome & { readonly lines: readonly Line[] }

/** Commands that have this test act on a node of its own. */
export async function commands(
  t: Test,
  acts: Readonly<Record<string, (node: string, direction: string) => Promise<void> | void>>,
) {
  const onRequest: RequestListener = async ({ url = '' }, response) => {
    const [, act = '', node = '', direction = ''] = url.split('/')
    await acts[act]!(node, direction)
    response.end()
  }
  const server = createServer(onRequest).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  return Object.keys(acts).flatMap(act => [
    `--${act}`,
    `"${process.execPath}" -e "fetch('http://127.0.0.1:${port}/${act}/{node}/{direction}').then(r => process.exit(r.ok ? 0 : 1))"`,
  ])
}

/** What each drill looks for behind its failure. */
export const FOUND = ['copies', 'calls', 'keys', 'messages', 'log']

/** Every check held. Returns the names of a drill's checks, in order. */
export function assertPassed(t: Test, { code, lines, stdout, stderr }: DrillOutcome) {
  t.same(
    lines.filter(({ ok }) => !ok),
    [],
    stderr,
  )
  t.equal(code, 0, stdout + stderr)
  return (name: string) => lines.filter(line => line.drill === name).map(({ check }) => check)
}

export async function drill(
  nodes: readonly TestNode[],
  args: readonly string[],
  host = '127.0.0.1',
): Promise<DrillOutcome> {
  const named = nodes.flatMap(({ name, server }) => [
    '--node',
    `${name}=${server.http.replace('127.0.0.1', host)},${server.admin},${server.grpc}`,
  ])
  const outcome = await runProgram(
    process.execPath,
    [startedProgram('scripts/callsign'), 'drill', '--json', ...named, ...args],
    { environment: { CALLSIGN_TEST_IDENTIFIERS: JSON.stringify(IDENTIFIERS) } },
  )
  const lines = outcome.stdout
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line))
  return { ...outcome, lines }
}

export function nodeOf({ nodes }: { readonly nodes: readonly TestNode[] }, name: string): TestNode {
  return nodes.find(node => node.name === name)!
}
