/** Members that are one of a few texts. */

import Type, { type TLiteral, type TSchema, type TUnion } from 'typebox'

export function oneOf<const Texts extends readonly string[]>(
  texts: Texts,
  description?: string,
): TUnion<LiteralsOf<Texts>> {
  const options = description === undefined ? {} : { description }
  const literals: TSchema[] = texts.map(text => Type.Literal(text))
  return Type.Union(literals, options) as TUnion<LiteralsOf<Texts>>
}

type LiteralsOf<Texts extends readonly string[]> = { -readonly [At in keyof Texts]: TLiteral<Texts[At]> }
