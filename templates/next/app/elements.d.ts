/** The elements of `@callsign/sdk/ui` in JSX: their properties, and a listener of each event as `on` with its name. */

import type {} from '@callsign/sdk/ui'
import type { Ref } from 'react'

type Tags = HTMLElementTagNameMap
type Props<Element> = Partial<Omit<Element, keyof HTMLElement>> & {
  readonly key?: string
  readonly ref?: Ref<Element>
  readonly [listener: `on${string}`]: (event: CustomEvent) => void
}
type Elements = { [Tag in keyof Tags as Tag extends `callsign-${string}` ? Tag : never]: Props<Tags[Tag]> }

declare module 'react' {
  namespace JSX {
    interface IntrinsicElements extends Elements {}
  }
}
