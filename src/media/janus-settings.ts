/** A Janus gateway as its operator has set it up. */

export interface JanusSettings {
  /** Its Admin API, such as `http://127.0.0.1:7088/admin`. */
  readonly adminUrl: string
  readonly adminSecret: string
  readonly adminKey: string
  readonly tokenSecret: string
  /** Where devices connect. */
  readonly clientUrl: string
  readonly events?: JanusEventsSettings
}

/** Where the gateway sends its events, and what it says to be let in. */
export interface JanusEventsSettings {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly password: string
}
