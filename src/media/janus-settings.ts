/** A Janus gateway as its operator has set it up. */

export interface JanusSettings {
  /** Its own among the gateways. */
  readonly name: string
  /** Its share of the calls, from 1 to 100. */
  readonly weight: number
  /** It keeps its calls, and gets no further one. */
  readonly isDraining: boolean
  /** Its Admin API, such as `http://127.0.0.1:7088/admin`. */
  readonly adminUrl: string
  readonly adminSecret: string
  readonly adminKey: string
  readonly tokenSecret: string
  /** Where devices connect. */
  readonly clientUrl: string
  /** Its login at the listener for events. */
  readonly eventsLogin?: { readonly user: string; readonly password: string }
}

/** Where gateways send their events. */
export interface JanusEventsSettings {
  readonly host: string
  readonly port: number
}
