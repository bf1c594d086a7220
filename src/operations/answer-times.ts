/**
 * The histogram of HTTP answer times. Departure from prom-client's `Histogram`, which hashes its labels at every
 * observation: that took 7 % of a lookup (`bench/lookup.ts`); here an observation adds to an array.
 */

import type { MetricValueWithName, Registry } from 'prom-client'

/** The answers of one route with one status. */
interface Series {
  readonly route: string
  readonly status: number
  /** How many answers fell into each bucket and no smaller one; the last is for those beyond all bounds. */
  readonly counts: Float64Array
  seconds: number
}

export class AnswerTimes {
  readonly name = 'callsign_http_request_seconds'
  readonly #bounds: readonly number[]
  readonly #series = new Map<string, Series[]>()

  /** `bounds` are the upper bounds of the buckets in seconds, ascending. */
  constructor(bounds: readonly number[], registry: Registry) {
    this.#bounds = bounds
    // The registry asks a metric for nothing but its name and `get`.
    registry.registerMetric(this as never)
  }

  observe(route: string, status: number, seconds: number): void {
    const series = this.#find(route, status)
    let bucket = 0
    while (bucket < this.#bounds.length && seconds > this.#bounds[bucket]!) bucket++
    series.counts[bucket]!++
    series.seconds += seconds
  }

  /** Output of prom-client's registry. */
  async get(): Promise<object> {
    return {
      name: this.name,
      help: 'Time from the request head to the answer, by route and status',
      type: 'histogram',
      aggregator: 'sum',
      values: [...this.#series.values()].flat().flatMap(series => this.#valuesOf(series)),
    }
  }

  #find(route: string, status: number): Series {
    const ofRoute = this.#series.get(route)
    for (const series of ofRoute ?? []) if (series.status === status) return series
    const series = { route, status, counts: new Float64Array(this.#bounds.length + 1), seconds: 0 }
    if (ofRoute === undefined) this.#series.set(route, [series])
    else ofRoute.push(series)
    return series
  }

  #valuesOf({ route, status, counts, seconds }: Series): MetricValueWithName<string>[] {
    const values: MetricValueWithName<string>[] = []
    const labels = { route, status }
    let total = 0
    for (const [bucket, count] of counts.entries()) {
      total += count
      const le = this.#bounds[bucket] ?? '+Inf'
      values.push({ metricName: `${this.name}_bucket`, value: total, labels: { le, ...labels } })
    }
    values.push({ metricName: `${this.name}_sum`, value: seconds, labels })
    values.push({ metricName: `${this.name}_count`, value: total, labels })
    return values
  }
}
