/** Members that are one of a few texts. */

import Type from 'typebox'

export function oneOf<const Text extends string>(texts: readonly Text[], description?: string) {
  const options = description === undefined ? {} : { description }
  return Type.Union(
    texts.map(text => Type.Literal(text)),
    options,
  )
}
