/** Tables of circles. Members stand in two: a circle's page reads the one, a call's start the other. */

import type { CircleId } from '../../domain/ids.ts'
import { HASH, ID } from '../engine/key-parts.ts'
import { idInKey, idsKey, textKey } from '../engine/keys.ts'
import { count, flag, id, object, oneOf, type RowOf, text } from '../engine/row-form.ts'
import { rowTable } from '../engine/table.ts'

export type Circle = RowOf<typeof CIRCLE>
const CIRCLE = object({
  /** The backend's id for it. */
  name: text,
  members: count,
  /** Its members are about to go with it, and have nothing by it. */
  isGone: flag,
})

export const CIRCLES = rowTable('circles', { circle: ID }, CIRCLE, {
  holds: 'the backend’s id for a circle, and how many members it has',
  shapes: [CIRCLE.shape()],
  relations: [
    {
      in: 'circles-by-name',
      under: (_, { name, isGone }) => (isGone ? undefined : textKey(name)),
      where: (found: bigint, key) => idInKey(key, 0) === found,
      what: () => 'the circle by its name',
    },
  ],
  remedy: 'have the backend delete the circle and make it again',
})

export const CIRCLES_BY_NAME = rowTable('circles-by-name', { name: HASH }, id<CircleId>(), {
  holds: 'the circle that the backend has an id for',
  relations: [
    {
      in: 'circles',
      under: (_, circleId) => idsKey(circleId),
      where: ({ name, isGone }: Circle, key) => !isGone && key.equals(textKey(name)),
      what: (_, circleId) => `circle ${circleId} with this name`,
    },
  ],
  remedy: 'have the backend make the circle again',
})

export const CIRCLE_MEMBERS = rowTable('circle-members', { circle: ID, user: ID }, count, {
  holds: 'since when a user is a member of a circle',
  relations: [
    { in: 'users', under: key => idsKey(idInKey(key, 1)), what: () => 'its user' },
    { in: 'circles', under: key => idsKey(idInKey(key, 0)), what: () => 'its circle' },
    {
      in: 'circles-of-user',
      under: key => idsKey(idInKey(key, 1), idInKey(key, 0)),
      what: () => 'the same under its user',
    },
  ],
  remedy: 'have the backend take the user out of the circle and put them in again',
})

export const CIRCLES_OF_USER = rowTable('circles-of-user', { user: ID, circle: ID }, oneOf(0), {
  holds: 'nothing: its key says which circles a user is a member of',
  relations: [
    {
      in: 'circle-members',
      under: key => idsKey(idInKey(key, 1), idInKey(key, 0)),
      what: () => 'the same under its circle',
    },
  ],
  remedy: 'have the backend take the user out of the circle and put them in again',
})
