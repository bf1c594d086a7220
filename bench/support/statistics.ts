/** Means, medians and percentiles. */

/** The middle value, or the mean of the two in the middle. NaN for no values. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  if (sorted.length % 2 === 1) return sorted[middle]!
  return sorted.length === 0 ? Number.NaN : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** NaN for no values. */
export function mean(values: readonly number[]): number {
  return sum(values) / values.length
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

/**
 * Half the width of the 95 % confidence interval of the mean, as a share of it, for values that scatter by a factor
 * rather than by an amount. Infinite for fewer than two values.
 */
export function uncertainty(values: readonly number[]): number {
  if (values.length < 2) return Number.POSITIVE_INFINITY
  const logarithms = values.map(value => Math.log(value))
  const centre = mean(logarithms)
  const freedom = values.length - 1
  const deviation = Math.sqrt(sum(logarithms.map(value => (value - centre) ** 2)) / freedom)
  const quantile = STUDENT_T[Math.min(freedom, STUDENT_T.length) - 1]!
  return quantile * (deviation / Math.sqrt(values.length))
}

/** The smallest value that at least `share` (0 to 1) of all values do not exceed. NaN for no values. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = Float64Array.from(values).sort()
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN
}

/** p50, p99, p99.9 and the maximum, in the unit of the values, three digits each. */
export function latencyFigures(values: readonly number[]): {
  readonly p50: number
  readonly p99: number
  readonly p999: number
  readonly max: number
} {
  return {
    p50: rounded(percentile(values, 0.5)),
    p99: rounded(percentile(values, 0.99)),
    p999: rounded(percentile(values, 0.999)),
    max: rounded(percentile(values, 1)),
  }
}

/** The value with four significant digits. */
export function rounded(value: number): number {
  return Number.isFinite(value) ? Number(value.toPrecision(4)) : value
}

/** Student's t of 95 % (two-sided), by degrees of freedom from 1 on. */
const STUDENT_T = [12.71, 4.3, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.2, 2.18, 2.16, 2.14] as const
