/** The elements of `@callsign/sdk/ui` in JSX: their properties, and a listener of each event as `on` with its name. */

import type {} from '@callsign/sdk/ui'
import type {} from 'react'

type Tags = HTMLElementTagNameMap
type Elements = {
  [Tag in keyof Tags as Tag extends `callsign-${string}` ? Tag : never]: Partial<
    Omit<Tags[Tag], keyof HTMLElement>
  > & { key?: string; [listener: `on${string}`]: (event: CustomEvent) => void }
}

declare module 'react' {
  namespace JSX {
    interface IntrinsicElements extends Elements {}
  }
}
