/** News that may change a node's role, for the one loop that changes it. */

import type { WriterState } from '../../store/postgres/writer-row.ts'

export type NodeNews =
  /** By the follower. */
  | { readonly kind: 'writer'; readonly writer: WriterState }
  | { readonly kind: 'lease-lost'; readonly epoch: number; readonly reason: string }
  | { readonly kind: 'stop' }

/** Keeps the newest of each kind. */
export class NewsOfNode {
  readonly #untaken = new Map<NodeNews['kind'], NodeNews>()
  #onOffered: () => void = () => {}

  offer(news: NodeNews): void {
    this.#untaken.set(news.kind, news)
    this.#onOffered()
  }

  /** Resolves with the kind that has waited longest, but `stop` is first: a node that is to stop takes no other role. */
  async next(): Promise<NodeNews> {
    while (this.#untaken.size === 0) {
      await new Promise<void>(resolve => {
        this.#onOffered = resolve
      })
    }
    const [longest] = this.#untaken.values()
    const news = this.#untaken.get('stop') ?? longest!
    this.#untaken.delete(news.kind)
    return news
  }
}
