/** Guesses the setting meant by an unknown name. */

/** The candidate that takes the fewest changed letters, up to a quarter of the name; undefined when none is near. */
export function nearestName(name: string, candidates: Iterable<string>): string | undefined {
  let nearest: string | undefined
  let fewest = Math.max(2, Math.floor(name.length / 4)) + 1
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - name.length) >= fewest) continue
    const changes = changesBetween(name, candidate)
    if (changes < fewest) [nearest, fewest] = [candidate, changes]
  }
  return nearest
}

/** Levenshtein's distance: letters added, dropped or replaced. */
function changesBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at)
  for (const [at, letter] of [...from].entries()) {
    const next = [at + 1]
    for (let column = 1; column <= to.length; column++) {
      const replaced = row[column - 1]! + (to[column - 1] === letter ? 0 : 1)
      next.push(Math.min(replaced, row[column]! + 1, next[column - 1]! + 1))
    }
    row = next
  }
  return row[to.length]!
}
