/**
 * The process's figures in Prometheus text form (prom-client). Labels are closed sets: never a user, a call or a
 * path parameter.
 */

import Counter from 'prom-client/lib/counter.js'
import Gauge from 'prom-client/lib/gauge.js'
import Histogram from 'prom-client/lib/histogram.js'
import Registry from 'prom-client/lib/registry.js'
import type { LoginCheckOutcome } from '../delivery/login-check.ts'
import type { DeliveryOutcome, Skipped } from '../delivery/outcome.ts'
import type { WebhookOutcome } from '../delivery/webhook.ts'
import type { Asker } from '../domain/accounts/known-sign-in.ts'
import type { SmsScope } from '../domain/accounts/sms-budget.ts'
import type { Channel } from '../domain/messages/outbox-message.ts'
import type { DeathReason } from '../domain/operators/webhook-event.ts'
import { AnswerTimes } from './answer-times.ts'

export class Metrics {
  readonly #registry = new Registry()
  #watching: Promise<void> | undefined
  /** Names of figures that end with the tenure that is under way. */
  #ofTenure: string[] | undefined

  readonly answerTimes = new AnswerTimes(SECONDS, this.#registry)

  readonly grpcCalls = new Histogram({
    name: 'callsign_grpc_call_seconds',
    help: 'Time of KTService.Register by status',
    labelNames: ['status'],
    buckets: SECONDS,
    registers: [this.#registry],
  })

  readonly refusals = new Counter({
    name: 'callsign_refusals_total',
    help: 'Requests and registrations that were refused, by error code',
    labelNames: ['code'],
    registers: [this.#registry],
  })

  readonly deliveries = new Counter({
    name: 'callsign_deliveries_total',
    help: 'Tries to send a message, by channel and outcome',
    labelNames: ['channel', 'outcome'],
    registers: [this.#registry],
  })

  readonly ringsByAlert = new Counter({
    name: 'callsign_rings_by_alert_total',
    help: 'Rings that went out as an alert, since Apple did not take the VoIP push',
    registers: [this.#registry],
  })

  readonly webhooks = new Counter({
    name: 'callsign_webhooks_total',
    help: 'Tries to send an event to an endpoint of webhooks, by outcome',
    labelNames: ['outcome'],
    registers: [this.#registry],
  })

  readonly deadWebhooks = new Counter({
    name: 'callsign_webhooks_dead_total',
    help: 'Events that an endpoint of webhooks did not take, by reason',
    labelNames: ['reason'],
    registers: [this.#registry],
  })

  readonly codeTries = new Counter({
    name: 'callsign_code_tries_total',
    help: 'Codes that were tried, by how the account knows who tries, and by outcome',
    labelNames: ['asker', 'outcome'],
    registers: [this.#registry],
  })

  readonly smsStops = new Counter({
    name: 'callsign_sms_stops_total',
    help: 'Times that short messages were stopped because too few codes were confirmed, by scope',
    labelNames: ['scope'],
    registers: [this.#registry],
  })

  readonly loginChecks = new Counter({
    name: 'callsign_login_checks_total',
    help: 'Codes that the operator’s login check was asked about, by outcome; after a failure the code leaves',
    labelNames: ['outcome'],
    registers: [this.#registry],
  })

  readonly callCommands = new Counter({
    name: 'callsign_call_commands_total',
    help: 'Commands to calls that were carried out, by kind',
    labelNames: ['kind'],
    registers: [this.#registry],
  })

  readonly loweredPushes = new Counter({
    name: 'callsign_pushes_lowered_total',
    help: 'Rings that came by a push whose priority Google had lowered, as the devices say',
    registers: [this.#registry],
  })

  readonly stompEndings = new Counter({
    name: 'callsign_stomp_endings_total',
    help: 'STOMP connections that came to their end, by reason',
    labelNames: ['reason'],
    registers: [this.#registry],
  })

  readonly mediaRequests = new Counter({
    name: 'callsign_media_requests_total',
    help: 'Requests to the media gateway, by outcome',
    labelNames: ['gateway', 'outcome'],
    registers: [this.#registry],
  })

  readonly mediaEvents = new Counter({
    name: 'callsign_media_events_total',
    help: 'Posts with events of the media gateway, by status of the answer; without a gateway: of a stranger',
    labelNames: ['gateway', 'status'],
    registers: [this.#registry],
  })

  readonly mediaOutsiders = new Counter({
    name: 'callsign_media_outsiders_total',
    help: 'People who were put out of a room of the media gateway because they were not in its call: LiveKit alone',
    labelNames: ['gateway'],
    registers: [this.#registry],
  })

  readonly mediaStrangers = new Counter({
    name: 'callsign_media_strangers_total',
    help: 'Rooms of the media gateway that were closed because no live call had them there',
    labelNames: ['gateway'],
    registers: [this.#registry],
  })

  readonly registrations = new Counter({
    name: 'callsign_log_registrations_total',
    help: 'Registrations answered with an index, new and repeated',
    registers: [this.#registry],
  })

  readonly batches = new Counter({
    name: 'callsign_log_batches_total',
    help: 'Checkpoints published: one for each batch, with witnesses one for each round',
    registers: [this.#registry],
  })

  readonly treeSize = new Gauge({
    name: 'callsign_log_tree_size',
    help: 'Entries covered by the published checkpoint',
    registers: [this.#registry],
  })

  constructor() {
    // A series that begins with its first event has no increase over it: what alarms watch begins at zero.
    this.refusals.inc({ code: 'STORE_UNAVAILABLE' }, 0)
    for (const asker of Object.keys(ASKERS))
      for (const outcome of ['accepted', 'wrong']) this.codeTries.inc({ asker, outcome }, 0)
    for (const scope of Object.keys(SMS_SCOPES)) this.smsStops.inc({ scope }, 0)
    for (const outcome of Object.keys(CHECKS)) this.loginChecks.inc({ outcome }, 0)
    for (const outcome of Object.keys(WEBHOOK_OUTCOMES)) this.webhooks.inc({ outcome }, 0)
    for (const reason of Object.keys(DEATHS)) this.deadWebhooks.inc({ reason }, 0)
    for (const channel of Object.keys(CHANNELS))
      for (const outcome of Object.keys(OUTCOMES)) this.deliveries.inc({ channel, outcome }, 0)
  }

  /** Its name is gone from the settings: else each name of a long life would leave figures. */
  forgetGateway(gateway: string): void {
    for (const outcome of MEDIA_OUTCOMES) this.mediaRequests.remove({ gateway, outcome })
    for (const status of MEDIA_STATUSES) this.mediaEvents.remove({ gateway, status })
    this.mediaStrangers.remove({ gateway })
  }

  /** In a front: figures of what only the writer does are not told, since zeros beside the writer's would mislead. */
  leaveOutWriters(): void {
    for (const name of OF_WRITER) this.#registry.removeSingleMetric(name)
  }

  /** Returns a function that removes all figures added after this call. */
  beginTenure(): () => void {
    const names: string[] = []
    this.#ofTenure = names
    return () => {
      this.#ofTenure = undefined
      for (const name of names) this.#registry.removeSingleMetric(name)
    }
  }

  /** A figure that rises and falls, read at each scrape. */
  gauge(name: string, help: string, read: () => number): void {
    this.#ofTenure?.push(name)
    const gauge: Gauge = new Gauge({
      name,
      help,
      registers: [this.#registry],
      collect: () => gauge.set(read()),
    })
  }

  /** As `gauge`, with a figure for each value of one label; a value that is no longer read is no longer shown. */
  labelledGauge(name: string, help: string, label: string, read: () => ReadonlyMap<string, number>): void {
    this.#ofTenure?.push(name)
    const gauge: Gauge = new Gauge({
      name,
      help,
      labelNames: [label],
      registers: [this.#registry],
      collect: () => {
        gauge.reset()
        for (const [value, figure] of read()) gauge.set({ [label]: value }, figure)
      },
    })
  }

  /** A figure that another part counts up from the start, read at each scrape. The name ends in `_total`. */
  counter(name: string, help: string, read: () => number): void {
    this.#ofTenure?.push(name)
    const counter: Counter = new Counter({
      name,
      help,
      registers: [this.#registry],
      collect: () => {
        counter.reset()
        counter.inc(read())
      },
    })
  }

  /** As `counter`, with a figure for each value of one label. */
  labelledCounter(name: string, help: string, label: string, read: () => ReadonlyMap<string, number>): void {
    this.#ofTenure?.push(name)
    const counter: Counter = new Counter({
      name,
      help,
      labelNames: [label],
      registers: [this.#registry],
      collect: () => {
        counter.reset()
        for (const [value, figure] of read()) counter.inc({ [label]: value }, figure)
      },
    })
  }

  /** Figures of the runtime are watched from the first time on: what observes them is loaded by it. */
  async text(): Promise<string> {
    this.#watching ??= watchRuntime(this.#registry)
    await this.#watching
    return this.#registry.metrics()
  }
}

async function watchRuntime(register: Registry): Promise<void> {
  const { default: collectDefaultMetrics } = await import('prom-client/lib/defaultMetrics.js')
  const { user, system } = process.cpuUsage()
  collectDefaultMetrics({ register })
  // They count from here on, but stand beside process_start_time_seconds.
  const spent = { cpu_user: user, cpu_system: system, cpu: user + system }
  for (const [name, micros] of Object.entries(spent)) {
    const counter = register.getSingleMetric(`process_${name}_seconds_total`)
    if (counter instanceof Counter) counter.inc(micros / 1e6)
  }
  // Gauges with a counter's name; the figures by type, from which each is summed, stay.
  for (const kind of ['handles', 'requests', 'resources']) {
    register.removeSingleMetric(`nodejs_active_${kind}_total`)
  }
}

const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const OF_WRITER = [
  'callsign_grpc_call_seconds',
  'callsign_deliveries_total',
  'callsign_rings_by_alert_total',
  'callsign_webhooks_total',
  'callsign_webhooks_dead_total',
  'callsign_code_tries_total',
  'callsign_sms_stops_total',
  'callsign_login_checks_total',
  'callsign_call_commands_total',
  'callsign_pushes_lowered_total',
  'callsign_media_requests_total',
  'callsign_media_events_total',
  'callsign_media_outsiders_total',
  'callsign_media_strangers_total',
  'callsign_log_registrations_total',
  'callsign_log_batches_total',
  'callsign_log_tree_size',
]
/** Complete by its type: a new channel without a line here does not compile. */
const CHANNELS: Record<Channel, true> = { mail: true, sms: true, push: true, apple: true }
const ASKERS: Record<Asker, true> = { stranger: true, network: true, token: true }
const SMS_SCOPES: Record<SmsScope, true> = { range: true, network: true, 'calling-code': true, all: true }
const CHECKS: Record<LoginCheckOutcome['kind'], true> = { allowed: true, denied: true, failed: true }
const OUTCOMES: Record<(DeliveryOutcome | Skipped)['kind'] | 'too-late', true> = {
  sent: true,
  skipped: true,
  retry: true,
  refused: true,
  'token-gone': true,
  'token-unknown': true,
  'too-late': true,
}
/** Outcomes by which requests to media gateways are counted. */
const MEDIA_OUTCOMES = ['ok', 'timeout', 'network', 'malformed', 'refused']
const MEDIA_STATUSES = ['200', '400', '405', '413']
const WEBHOOK_OUTCOMES: Record<WebhookOutcome['kind'], true> = {
  sent: true,
  retry: true,
  gone: true,
  hopeless: true,
}
const DEATHS: Record<DeathReason, true> = {
  expired: true,
  crowded: true,
  'too-large': true,
  unreadable: true,
}
