/** News of the index for the operator; each is a line of the log. */
export type IndexEvent =
  /** An index of this key is new. `earlier` is the key of the one before, which is gone. */
  | { readonly event: 'index-begun'; readonly vkey: string; readonly earlier?: string }
  | { readonly event: 'index-building'; readonly done: number; readonly of: number }
  | { readonly event: 'index-checkpoint'; readonly treeSize: number; readonly entries: number }
  /** The map does not match its last leaf, and is built again. */
  | { readonly event: 'index-damaged'; readonly reason: string }
  | { readonly event: 'index-rebuilt'; readonly entries: number }
  /** Tried again later. */
  | { readonly event: 'index-failed'; readonly reason: string }
  /** Nothing is appended until the operator has mended that. */
  | { readonly event: 'index-held'; readonly reason: string }
