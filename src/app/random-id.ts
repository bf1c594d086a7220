/** Decimal, from 2^32 up to 2^53: of a device or a call that no server has named. */
export function randomId(): string {
  for (;;) {
    const [word = 0n] = globalThis.crypto.getRandomValues(new BigUint64Array(1))
    const id = word >> 11n
    if (id >= 2n ** 32n) return `${id}`
  }
}
