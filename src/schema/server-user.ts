/** Wire shapes of users as the server API has them. */

import Type from 'typebox'
import { SessionView } from './account.ts'
import { HistoryPage } from './call.ts'
import { DeviceItem } from './device.ts'
import { LoginMethodView } from './login-method.ts'
import { oneOf } from './one-of.ts'
import { PAGE_MEMBERS, page } from './page.ts'
import { DeleteUserReply } from './profile.ts'
import { SuspensionView } from './suspension.ts'
import { Time } from './time.ts'
import { Uint64Text } from './uint64.ts'

const Reachable = oneOf(
  ['contacts', 'all'],
  'Who may call: contacts alone, or everybody who knows the user id',
)

/** A member left out stays as it is. */
export const PutServerUserRequest = Type.Object(
  {
    displayName: Type.Optional(
      Type.String({
        description:
          '1 to 50 characters as a reader counts them, in at most 200 bytes. A new user without one is called by the email address',
      }),
    ),
    email: Type.Optional(
      Type.String({
        description:
          'For lists and look-ups of your own. Nobody has proven it, so it signs nobody in. Empty: taken away',
      }),
    ),
    phone: Type.Optional(
      Type.String({ description: 'Likewise, with + and the calling code, or with `country`' }),
    ),
    country: Type.Optional(
      Type.String({ description: 'ISO 3166 letters: what a phone number without calling code belongs to' }),
    ),
    reachable: Type.Optional(Reachable),
    externalId: Type.Optional(
      Type.String({
        description:
          'Your own id of the user: text of at most 256 octets in UTF-8, compared by octets. Set for a user named by `id:`. ' +
          'Empty: taken away',
      }),
    ),
  },
  { examples: [{ displayName: 'Ann', email: 'ann@example.org', reachable: 'contacts' }] },
)

const State = oneOf(
  ['active', 'suspended', 'ending'],
  '`ending`: the account will be erased at `erasesAt`, unless its user signs in before',
)

const SUSPENSION = without(SuspensionView.properties, 'userId')

export const ServerUserView = Type.Object({
  userId: Uint64Text,
  externalId: Type.Optional(Type.String()),
  displayName: Type.String(),
  state: State,
  erasesAt: Type.Optional(Time),
  suspension: Type.Optional(Type.Object(SUSPENSION)),
  reachable: Reachable,
  email: Type.Optional(Type.String({ description: 'As you have said it; unproven' })),
  phone: Type.Optional(Type.String({ description: 'Likewise' })),
  ownsSignIn: Type.Boolean({
    description:
      'Whether the user signs in by methods of their own: then nobody else gets a sign-in token for them',
  }),
  loginMethods: Type.Array(LoginMethodView, { description: 'What the user has proven' }),
  createdAt: Time,
})

export const ServerUserPage = page(ServerUserView)

export const ServerUsersQuery = Type.Object({
  email: Type.Optional(
    Type.String({
      description: 'Users with this address, proven or said by you. Left out, as `phone`: all users',
    }),
  ),
  phone: Type.Optional(Type.String({ description: 'Likewise, with + and the calling code' })),
  ...PAGE_MEMBERS,
})

export const UserChangesQuery = Type.Object({
  since: Type.Optional(
    Type.Integer({
      minimum: 0,
      description: 'The `next` of the answer before; left out: from the beginning',
    }),
  ),
  limit: PAGE_MEMBERS.limit,
})

export const UserChangesReply = Type.Object({
  items: Type.Array(
    Type.Object({
      userId: Uint64Text,
      changedAt: Time,
      state: oneOf(
        ['active', 'suspended', 'ending', 'erased'],
        '`erased` is told for 30 days, without `user`',
      ),
      user: Type.Optional({ ...ServerUserView, description: 'As the user is now' }),
    }),
    { description: 'The latest change of each user, oldest first' },
  ),
  next: Type.Integer({ description: 'To be sent as `since` the next time' }),
  hasMore: Type.Boolean({ description: 'Whether there are more already' }),
})

export const DeleteServerUserQuery = Type.Object({
  now: Type.Optional(
    Type.Boolean({
      description: 'Erased at once, for good. Left out: in seven days, unless the user signs in',
    }),
  ),
})

export const DeleteServerUserReply = DeleteUserReply

const SESSION = without(SessionView.properties, 'isCurrent')
export const ServerSessionList = Type.Object({ items: Type.Array(Type.Object(SESSION)) })

const DEVICE = without(DeviceItem.properties, 'current')
export const ServerDeviceList = Type.Object({ items: Type.Array(Type.Object(DEVICE)) })

export const ServerCallPage = HistoryPage

/** A line of an import: whom it is about, and what `PUT users/{ref}` takes. */
export const UserImportLine = Type.Object({
  ref: Type.String({
    description: '`ext:` and your own id of the user, or `id:` and the user id; not percent-encoded',
  }),
  ...PutServerUserRequest.properties,
})

/** The answer to a line, which is a line. */
export const UserImportAnswer = Type.Object({
  line: Type.Integer({ description: 'From 1 on; an empty line has a number and no answer' }),
  status: oneOf(['created', 'changed', 'unchanged', 'refused']),
  userId: Type.Optional(Uint64Text),
  code: Type.Optional(
    Type.String({ description: 'Of a refused line: the code that `PUT users/{ref}` would refuse with' }),
  ),
  detail: Type.Optional(Type.String()),
})

function without<Members, Name extends keyof Members>(members: Members, name: Name): Omit<Members, Name> {
  const { [name]: _, ...others } = members
  return others
}
