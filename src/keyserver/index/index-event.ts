/** News of the index for its operator; each is a line of the server's log. */
export type IndexEvent =
  /** An index of this key is new. `earlier` is the key of the one before, which is gone. */
  | { readonly event: 'index-begun'; readonly vkey: string; readonly earlier?: string }
  | { readonly event: 'index-building'; readonly done: number; readonly of: number }
  | { readonly event: 'index-checkpoint'; readonly treeSize: number; readonly entries: number }
  /** The map has another root than its last leaf, and is built again. */
  | { readonly event: 'index-damaged'; readonly reason: string }
  | { readonly event: 'index-rebuilt'; readonly entries: number }
  /** Tried again later. */
  | { readonly event: 'index-failed'; readonly reason: string }
  /** Nothing is appended until that is mended. */
  | { readonly event: 'index-held'; readonly reason: string }
