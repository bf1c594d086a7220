/** Watches of topics: each is subscribed once on each connection, for as long as the app wants it. */

import type { Failure } from '../callsign-error.ts'
import { connectedIn, socketIn, type Watch } from './phase.ts'
import { OFFLINE, type Step } from './step.ts'

export function watch(step: Step, command: number, destination: string): void {
  const { kind } = step.phase
  if (kind === 'off' || kind === 'elsewhere') return step.settle(command, OFFLINE)
  const added = { id: `watch-${command}`, destination, command, socket: undefined }
  step.change({ watches: [...step.connection.watches, added] })
  const connected = connectedIn(step.phase)
  if (connected !== undefined) subscribeWatch(step, connected.socket, added)
}

/** A subscription that is under way ends when the server has it: UNSUBSCRIBE of a refused one would end the connection. */
export function unwatch(step: Step, id: string): void {
  const left = step.connection.watches.find(each => each.id === id)
  if (left === undefined) return
  step.change({ watches: step.connection.watches.filter(each => each !== left) })
  if (left.socket !== undefined && left.socket === socketIn(step.phase)) leave(step, left.socket, id)
}

/** Returns the number of the act. */
export function subscribeWatch(step: Step, socket: number, { id, destination }: Watch): number {
  const headers = { id, destination }
  return step.request({ socket, command: 'SUBSCRIBE', headers }, { for: 'watch', socket, id })
}

export function onWatched(step: Step, socket: number, id: string): void {
  const watch = step.connection.watches.find(each => each.id === id)
  if (watch !== undefined) {
    const { command } = watch
    const watched = { ...watch, command: undefined, socket }
    step.change({ watches: step.connection.watches.map(each => (each === watch ? watched : each)) })
    if (command !== undefined) step.act({ do: 'settle', command, watch: id })
  } else if (socket === socketIn(step.phase)) leave(step, socket, id)
}

/** Where the connection broke, the next one tries again. */
export function onRefused(step: Step, id: string, failure: Failure): void {
  const watch = step.connection.watches.find(each => each.id === id)
  if (watch === undefined || failure.code === 'OFFLINE') return
  step.change({ watches: step.connection.watches.filter(each => each !== watch) })
  step.settle(watch.command, failure)
}

function leave(step: Step, socket: number, id: string): void {
  step.act({ do: 'tell', socket, command: 'UNSUBSCRIBE', headers: { id } })
}
