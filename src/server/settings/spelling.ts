/** Guesses the setting meant by an unknown name. */

/** `; did you mean A?`, or two of them where both are as near; empty when none is near. */
export function guessOf(name: string, candidates: Iterable<string>): string {
  const nearest = nearestNames(name, candidates).slice(0, GUESSES_MAX)
  return nearest.length === 0 ? '' : `; did you mean ${nearest.join(' or ')}?`
}

/** The candidates that take the fewest changed letters, up to a quarter of the name. */
function nearestNames(name: string, candidates: Iterable<string>): readonly string[] {
  let nearest: string[] = []
  let fewest = Math.max(2, Math.floor(name.length / 4))
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - name.length) > fewest) continue
    const changes = changesBetween(name, candidate)
    if (changes < fewest) [nearest, fewest] = [[], changes]
    if (changes === fewest) nearest.push(candidate)
  }
  return nearest
}

/** Letters added, dropped, replaced, or swapped with the next one (optimal string alignment). */
function changesBetween(from: string, to: string): number {
  let before: readonly number[] = []
  let row = Array.from({ length: to.length + 1 }, (_, at) => at)
  for (let at = 0; at < from.length; at++) {
    const next = [at + 1]
    for (let column = 1; column <= to.length; column++) {
      const replaced = row[column - 1]! + (to[column - 1] === from[at] ? 0 : 1)
      const isSwapped = to[column - 1] === from[at - 1] && to[column - 2] === from[at]
      const swapped = isSwapped ? before[column - 2]! + 1 : Number.POSITIVE_INFINITY
      next.push(Math.min(replaced, row[column]! + 1, next[column - 1]! + 1, swapped))
    }
    before = row
    row = next
  }
  return row[to.length]!
}

const GUESSES_MAX = 2
