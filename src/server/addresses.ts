/** The addresses that the server listens on, and those by which browsers, phones and programs reach it. */

import { assert } from '../errors.ts'
import type { Addresses } from '../fronts/messages.ts'
import type { HttpServer } from '../transport/http.ts'
import type { Config } from './settings/config.ts'

/** The server's own addresses: all known at once, when every port is open. */
export class OwnAddresses {
  readonly #config: Config
  #all: Addresses | undefined

  constructor(config: Config) {
    this.#config = config
  }

  opened(all: Addresses): void {
    this.#all = all
  }

  get areOpen(): boolean {
    return this.#all !== undefined
  }

  get all(): Addresses {
    assert(this.#all !== undefined, 'no request comes before the ports are open')
    return this.#all
  }

  /** As clients see it. */
  readonly publicUrl = (): string => this.#config.publicUrl ?? ownUrlOf(this.#config, this.all)

  /** The server API's, as the backend sees it. */
  readonly serverApiUrl = (): string => serverApiUrlOf(this.#config, this.all)

  /** As programs on this machine see it. */
  readonly localUrl = (): string => localUrlOf(this.#config, this.all)
}

/** The address of the public port for programs on this machine; never a wildcard address. */
function localUrlOf(config: Config, { http }: Addresses): string {
  if (isOnLanOnly(config)) return `${new URL(http).protocol}//${LOOPBACK}:${portIn(http)}`
  return http.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
}

/** The address that clients see, where no setting gives it. */
export function ownUrlOf({ http: { host }, lanAddress }: Config, { http }: Addresses): string {
  if (lanAddress === undefined || !isEveryAddress(host)) return http
  return `${new URL(http).protocol}//${lanAddress}:${portIn(http)}`
}

/** The server API's address for the backend. */
export function serverApiUrlOf(config: Config, addresses: Addresses): string {
  const { isPublic } = config.serverApi
  return isPublic ? (config.publicUrl ?? ownUrlOf(config, addresses)) : addresses.serverApi
}

/** The same settings, with the ports now open. */
export function listeningAsBefore(
  config: Config,
  { http, grpc, admin, serverApi, stompTcp }: Addresses,
): Config {
  return {
    ...config,
    http: { ...config.http, port: portIn(http) },
    grpc: { ...config.grpc, port: portIn(grpc) },
    admin: { ...config.admin, port: portIn(admin) },
    serverApi: { ...config.serverApi, port: portIn(serverApi) },
    ...(stompTcp === undefined ? {} : { stompTcpPort: portIn(stompTcp) }),
  }
}

/** Whether a development server listens on one address of a network, and so not yet on loopback. */
export function isOnLanOnly({ isExposed, http: { host } }: Pick<Config, 'isExposed' | 'http'>): boolean {
  return isExposed && !isEveryAddress(host)
}

/**
 * Opens loopback beside one address of a network: browsers on this machine, simulators and emulators keep their usual
 * address.
 */
export function alsoOnLoopback(
  config: Pick<Config, 'isExposed' | 'http'>,
  http: Pick<HttpServer, 'listen' | 'stopListening'>,
): Pick<HttpServer, 'listen'> {
  if (!isOnLanOnly(config)) return http
  return {
    async listen(host, port) {
      for (let tries = 1; ; tries++) {
        const bound = await http.listen(host, port)
        try {
          return await http.listen(LOOPBACK, bound)
        } catch (error) {
          http.stopListening()
          // The kernel chose a port that is free on the network; another program may have it on loopback.
          if (port !== 0 || tries === CHOICES_MAX) throw error
        }
      }
    },
  }
}

function isEveryAddress(host: string): boolean {
  return host === '0.0.0.0' || host === '::'
}

/** The port that an address ends with. */
export function portIn(address: string): number {
  return Number(address.slice(address.lastIndexOf(':') + 1))
}

const LOOPBACK = '127.0.0.1'
const CHOICES_MAX = 20
