/** Random order (Fisher and Yates, in Durstenfeld's form: Knuth, volume 2, algorithm 3.4.2P). */

/** Puts the items into random order, in place, each order equally likely; `random` is at least 0 and less than 1. */
export function shuffle<Item>(items: Item[], random: () => number): Item[] {
  for (let left = items.length; left > 1; left--) {
    const chosen = Math.floor(random() * left)
    const item = items[chosen]!
    items[chosen] = items[left - 1]!
    items[left - 1] = item
  }
  return items
}
