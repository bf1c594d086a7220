/**
 * The media gateways of a deployment: which one gets a call, which one keeps it, and whose calls go to another.
 *
 * A call stays where its devices were let in until that gateway is lost, or gone from the settings. One that drains keeps its
 * calls, and gets none.
 */

import type { CallId } from '../domain/ids.ts'
import type { GatewayRoom } from './gateway.ts'
import { chooseGateway } from './gateway-choice.ts'
import { type GatewayHealth, LOOK_MS } from './gateway-health.ts'
import type { GatewayHost } from './gateway-host.ts'

export interface PoolMember {
  readonly host: GatewayHost
  readonly health: GatewayHealth
  readonly weight: number
  readonly isDraining: boolean
}

interface PoolContext {
  readonly index: {
    rooms(): Iterable<GatewayRoom & { readonly gateway: string | undefined }>
    isLive(callId: CallId): boolean
    gatewayOf(callId: CallId): string | undefined
    /** Live calls by gateway. */
    gateways(): ReadonlyMap<string, number>
  }
  readonly monotonicMs: () => number
  /** The call's gateway is lost, or gone from the settings, and another may take its room. */
  readonly onHomeless: (callId: CallId, gateway: string) => void
  /** Once, as it begins to give its calls away. */
  readonly onGivenUp: (gateway: string, calls: number) => void
}

export class GatewayPool {
  readonly #deps: PoolContext
  #members: ReadonlyMap<string, PoolMember> = new Map()
  /** Gateways that calls were given to, and have not let a device in yet. */
  readonly #given = new Map<CallId, string>()
  readonly #givenUp = new Set<string>()
  readonly #lookedAtMs = new Map<GatewayHost, number>()
  readonly #underWay = new Set<GatewayHost>()
  readonly #sweeping = new Set<GatewayHost>()

  constructor(deps: PoolContext) {
    this.#deps = deps
  }

  get members(): readonly PoolMember[] {
    return [...this.#members.values()]
  }

  of(name: string): PoolMember | undefined {
    return this.#members.get(name)
  }

  /** Those that are not among them any more give their calls away at once. */
  replace(members: readonly PoolMember[]): void {
    this.#members = new Map(members.map(member => [member.host.name, member]))
    for (const host of this.#lookedAtMs.keys())
      if (this.of(host.name)?.host !== host) this.#lookedAtMs.delete(host)
    for (const name of this.#givenUp) if (!this.#members.has(name)) this.#givenUp.delete(name)
    this.#giveAway()
  }

  /** `held` lets the call's devices in, or did until now; `asked` was asked for a room last. Undefined where none may take it. */
  choose(callId: CallId, held: string | undefined, asked: string | undefined): string | undefined {
    const keeper = held === undefined ? undefined : this.of(held)
    if (keeper !== undefined && !keeper.health.isLost) return held
    const candidates = this.#candidates()
    // A room may be on its way there, or a reply that names it.
    const before = asked ?? this.#given.get(callId)
    if (candidates.some(({ name }) => name === before)) return before
    const calls = this.#callsByGateway()
    const chosen = chooseGateway(callId, candidates, name => calls.get(name) ?? 0)?.name
    if (chosen === undefined) return keeper === undefined ? undefined : held
    this.#given.set(callId, chosen)
    return chosen
  }

  /** Call this each second. */
  tick(): void {
    const nowMs = this.#deps.monotonicMs()
    for (const { host } of this.members) {
      const lookedAtMs = this.#lookedAtMs.get(host) ?? Number.NEGATIVE_INFINITY
      if (nowMs - lookedAtMs >= LOOK_MS && !this.#underWay.has(host)) void this.#look(host, nowMs)
    }
    for (const [callId] of this.#given) if (!this.#isGiven(callId)) this.#given.delete(callId)
    this.#giveAway()
  }

  /** All gateways at once, but for those whose last sweep goes on: a slow one is in no other's way. Never rejects. */
  async sweep(): Promise<void> {
    const hosts = this.members.map(({ host }) => host).filter(host => !this.#sweeping.has(host))
    await Promise.all(
      hosts.map(async host => {
        this.#sweeping.add(host)
        await host.sweep()
        this.#sweeping.delete(host)
      }),
    )
  }

  async #look(host: GatewayHost, nowMs: number): Promise<void> {
    this.#lookedAtMs.set(host, nowMs)
    this.#underWay.add(host)
    await host.look()
    this.#underWay.delete(host)
    if (this.of(host.name)?.health.isUp !== true || !this.#givenUp.delete(host.name)) return
    // The rooms that it still has are of calls that went on elsewhere.
    await host.sweep()
  }

  #candidates() {
    const able = this.members
      .filter(({ health, isDraining }) => health.isUp && !isDraining)
      .map(({ host: { name }, health, weight }) => ({ name, weight, health }))
    const steady = able.filter(({ health }) => health.isSteady)
    return steady.length > 0 ? steady : able
  }

  #callsByGateway(): ReadonlyMap<string, number> {
    const calls = new Map(this.#deps.index.gateways())
    for (const [callId, name] of this.#given)
      if (this.#isGiven(callId)) calls.set(name, (calls.get(name) ?? 0) + 1)
    return calls
  }

  /** Whether the call is on its way to the gateway that it was given to. */
  #isGiven(callId: CallId): boolean {
    const { index } = this.#deps
    return index.isLive(callId) && index.gatewayOf(callId) === undefined
  }

  #giveAway(): void {
    const { index, onHomeless, onGivenUp } = this.#deps
    const homeless = new Map<string, number>()
    for (const [name, calls] of index.gateways())
      if (this.of(name)?.health.isLost ?? true) homeless.set(name, calls)
    for (const { host, health } of this.members) {
      if (!health.isLost || this.#givenUp.has(host.name)) continue
      this.#givenUp.add(host.name)
      onGivenUp(host.name, homeless.get(host.name) ?? 0)
    }
    if (homeless.size === 0 || this.#candidates().length === 0) return
    for (const { callId, gateway } of index.rooms())
      if (gateway !== undefined && homeless.has(gateway)) onHomeless(callId, gateway)
  }
}
