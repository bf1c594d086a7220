/**
 * A list whose items keep their elements: when one comes in front, the rest move down as they are, and keyboard focus
 * stays on its item.
 */

import { render, type TemplateResult } from 'lit-html'

export class KeyedList<Item> {
  /** Put this into a template. */
  readonly element: HTMLElement
  readonly #tag: string
  readonly #keyOf: (item: Item) => string | number
  readonly #rows = new Map<string | number, HTMLElement>()

  constructor(listTag: string, className: string, keyOf: (item: Item) => string | number) {
    this.element = document.createElement(listTag)
    this.element.className = className
    this.#tag = listTag === 'tbody' ? 'tr' : 'li'
    this.#keyOf = keyOf
  }

  /** Shows the items in this order, each by its template, and returns the element. */
  show(items: readonly Item[], templateOf: (item: Item) => TemplateResult): HTMLElement {
    const wanted = new Set(items.map(this.#keyOf))
    for (const [key, row] of this.#rows) {
      if (wanted.has(key)) continue
      row.remove()
      this.#rows.delete(key)
    }
    let before: Element | null = this.element.firstElementChild
    for (const item of items) {
      const row = this.#rowOf(this.#keyOf(item))
      render(templateOf(item), row)
      if (row === before) before = row.nextElementSibling
      else this.element.insertBefore(row, before)
    }
    return this.element
  }

  #rowOf(key: string | number): HTMLElement {
    const known = this.#rows.get(key)
    if (known !== undefined) return known
    const row = document.createElement(this.#tag)
    this.#rows.set(key, row)
    return row
  }
}
