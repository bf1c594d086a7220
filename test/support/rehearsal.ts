/**
 * The built server in production mode, joined to stand-ins of everything outside it, with people who sign in to it as
 * they would. At the end its log is searched for what they keep to themselves.
 */

import assert from 'node:assert'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { Test } from 'tap'
import { App } from './app.ts'
import type { Claims } from './oidc-provider.ts'
import {
  APPLE_APP,
  GOOGLE_APP,
  type OutsideWorld,
  productionEnvironment,
  startOutsideWorld,
} from './outside-world.ts'
import { type RunningServer, startServer } from './server.ts'
import { codeIn } from './smtp-sink.ts'
import { proveByCode } from './step-up.ts'

export interface RehearsalOptions {
  readonly dataFolder: string
  /** Settings beyond those that join the stand-ins; an empty one takes one of these away. */
  readonly environment?: Readonly<Record<string, string>>
}

export class Rehearsal {
  readonly world: OutsideWorld
  readonly #options: RehearsalOptions
  readonly #environment: Readonly<Record<string, string>>
  readonly #apps: App[]
  /** Tells a chapter's subjects from those of the next one. */
  readonly #suffix: string
  #chapters = 0
  #server: RunningServer
  #stderr = ''

  private constructor(
    world: OutsideWorld,
    options: RehearsalOptions,
    environment: Readonly<Record<string, string>>,
    server: RunningServer,
    { apps = [], suffix = '' }: { readonly apps?: App[]; readonly suffix?: string } = {},
  ) {
    this.world = world
    this.#options = options
    this.#environment = environment
    this.#server = server
    this.#apps = apps
    this.#suffix = suffix
  }

  /**
   * For the tests of a file, each with a chapter of its own. After the last one the server has to stop cleanly, and its log
   * is searched for what all of them keep to themselves.
   */
  static async share(t: Test): Promise<Rehearsal> {
    const world = await startOutsideWorld(t)
    const story = await Rehearsal.#startIn(world, { dataFolder: join(t.testdir(), 'data') })
    t.teardown(async () => {
      const { exit, leaked } = await story.#end()
      assert.deepEqual([exit, leaked], [0, []])
    })
    return story
  }

  /** The server and the world as they are, with people of its own. It ends nothing. */
  chapter(): Rehearsal {
    const own = { apps: this.#apps, suffix: `-${++this.#chapters}` }
    return new Rehearsal(this.world, this.#options, this.#environment, this.#server, own)
  }

  /** Ends with the test. */
  static async start(t: Test, options: RehearsalOptions): Promise<Rehearsal> {
    const world = await startOutsideWorld(t)
    const rehearsal = await Rehearsal.#startIn(world, options)
    t.teardown(() => rehearsal.#server.end('SIGKILL'))
    return rehearsal
  }

  static async #startIn(world: OutsideWorld, options: RehearsalOptions): Promise<Rehearsal> {
    const environment = {
      ...productionEnvironment(),
      ...world.environment,
      CALLSIGN_LOG_LEVEL: 'debug',
    }
    const { dataFolder } = options
    const server = await startServer({
      dataFolder,
      environment: { ...environment, ...options.environment },
      dev: false,
    })
    return new Rehearsal(world, options, environment, server)
  }

  get server(): RunningServer {
    return this.#server
  }

  /** Another node beside the server, with these settings changed. It is the caller's to end. */
  startBeside(dataFolder: string, changed: Readonly<Record<string, string>>): Promise<RunningServer> {
    const environment = { ...this.#environment, ...this.#options.environment, ...changed }
    return startServer({ dataFolder, environment, dev: false })
  }

  /** Ends the server by the signal and starts it again with these settings changed; the apps go on with it. */
  async restart(
    signal: NodeJS.Signals,
    changed: Readonly<Record<string, string>> = this.#options.environment ?? {},
  ): Promise<void> {
    await this.#server.end(signal)
    this.#stderr += this.#server.stderr()
    const { dataFolder } = this.#options
    const environment = { ...this.#environment, ...changed }
    this.#server = await startServer({ dataFolder, environment, dev: false })
    for (const app of this.#apps) app.http = this.#server.http
  }

  /** A new installation of the app, whose user keeps these to themselves. */
  app(...secrets: readonly string[]): App {
    const app = new App(this.#server.http)
    app.secrets.push(...secrets)
    this.#apps.push(app)
    return app
  }

  /** An app whose user has signed in by a code to this mail address. */
  async signIn(email: string, ...secrets: readonly string[]): Promise<App> {
    const app = this.app(email, ...secrets)
    const [displayName = ''] = email.split('@')
    const { challengeId } = await app.get(200, 'POST /app/api/login', { email, displayName })
    const otp = app.hide(codeIn(await this.world.mail.mailTo(email)))
    app.take(await app.get(200, 'POST /app/api/verify-login', { challengeId, otp }))
    return app
  }

  /** The user of the app proves who they are by a code to this mail address. */
  prove(app: App, email: string): Promise<void> {
    return proveByCode(app, async () => app.hide(codeIn(await this.world.mail.mailTo(email))))
  }

  /** The body of a login by a token of the identity provider, another token each time. */
  async googleLogin(subject: string, claims: Claims = {}) {
    const idToken = await this.world.google.idToken(GOOGLE_APP, {
      sub: subject + this.#suffix,
      jti: randomUUID(),
      ...claims,
    })
    return { verified: true, provider: 'google', idToken }
  }

  /** The body of a login with Apple, by another token and code each time. */
  async appleLogin(subject: string) {
    const grantee = { subject, clientId: APPLE_APP }
    const email = `${subject}@privaterelay.appleid.com`
    const claims = { jti: randomUUID(), email, email_verified: 'true', is_private_email: 'true' }
    const identityToken = await this.world.apple.identityToken(grantee, claims)
    const displayName = subject[0]!.toUpperCase() + subject.slice(1)
    return { platform: 'apple', identityToken, displayName, ...this.appleCode(subject) }
  }

  appleCode(subject: string) {
    return { authorizationCode: this.world.apple.issueCode({ subject, clientId: APPLE_APP }) }
  }

  /**
   * Stops the server and looks for what people keep to themselves in everything that it has written. After a chapter that is
   * left to the end of the whole.
   */
  async endWithoutLeaks(t: Test): Promise<void> {
    if (this.#suffix !== '') return
    const { exit, leaked, what } = await this.#end()
    t.equal(exit, 0, 'it stops cleanly')
    t.same(leaked, [], what)
  }

  async #end() {
    const exit = await this.#server.end()
    const written = this.#stderr + this.#server.stderr()
    const secrets = this.#apps.flatMap(({ secrets }) => secrets)
    const leaked = secrets.filter(secret => leaks(written, secret))
    return {
      exit,
      leaked,
      what: `none of ${secrets.length} secrets is in ${written.length} characters of log`,
    }
  }
}

/** Six digits are sought as a word: they may be part of a request's id. */
function leaks(text: string, secret: string): boolean {
  return /^\d{6}$/.test(secret)
    ? new RegExp(`(?<![\\w.-])${secret}(?![\\w-])`).test(text)
    : text.includes(secret)
}
