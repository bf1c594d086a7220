/** Writes of one batch that are computed before its transaction and become readable from the table after it. */
export interface PendingWrites {
  readonly writes: readonly { readonly key: Uint8Array; readonly value: Uint8Array }[]
  /** To be called when the writes are durable: reads go to the table from then on. */
  release(): void
}
