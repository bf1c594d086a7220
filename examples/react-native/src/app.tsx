/** Sign-in, people, and the call with the fingerprint of its key. There is no sound or picture yet. */

import { type Call, CallsignError, hasCode, type Question } from '@callsign/sdk/app'
import type { CallView } from '@callsign/sdk/react'
import { useCalls, useCallsign, useContacts, useDevices } from '@callsign/sdk/react'
import { useEffect, useState } from 'react'
import { Alert, Button, SafeAreaView, ScrollView, Share, Text, TextInput } from 'react-native'
import { me } from './me.ts'
import { beReachable, call as callPerson, shownCaller } from './ringing.ts'

interface Asked extends Question {
  readonly answer: (code: string) => void
}

export function App() {
  const { userId, user, connection } = useCallsign(me)
  const calls = useCalls(me)
  const [notice, setNotice] = useState('')
  const [asked, setAsked] = useState<Asked>()
  const act = (work: () => Promise<unknown>) => {
    setNotice('')
    work().catch((error: unknown) => {
      if (hasCode(error, 'KEYS_RESET')) askAboutKeys(error.members, () => act(work), act)
      else setNotice(error instanceof CallsignError ? error.sentence : String(error))
    })
  }

  useEffect(() => {
    const stops = [
      me.on('error', ({ sentence }) => setNotice(sentence)),
      me.on('signed-out', ({ sentence }) => setNotice(sentence)),
      me.on('keys', ({ kind }) =>
        setNotice(`Devices of a contact have changed, or their keys do not hold (${kind}).`),
      ),
    ]
    me.resume().catch((error: unknown) => setNotice(String(error)))
    return () => {
      for (const stop of stops) stop()
    }
  }, [])

  useEffect(() => {
    if (userId !== undefined) beReachable().catch((error: unknown) => setNotice(String(error)))
  }, [userId])

  const askCode = (question: Question) =>
    new Promise<string>(resolve => setAsked({ ...question, answer: resolve }))
  const signIn = (address: string) =>
    act(async () => {
      try {
        await me.signIn(address, askCode, { displayName: address.split('@')[0] ?? address })
      } finally {
        setAsked(undefined)
      }
    })

  return (
    <SafeAreaView>
      <ScrollView keyboardShouldPersistTaps="handled">
        {notice !== '' && <Text>{notice}</Text>}
        {userId === undefined && asked === undefined && (
          <Line label="Email address" action="Send a code" onSubmit={signIn} />
        )}
        {asked !== undefined && (
          <>
            <Text>{asked.error?.sentence ?? `A code is on its way to ${asked.sentTo}.`}</Text>
            <Line label="Code" action="Go on" onSubmit={asked.answer} />
          </>
        )}
        {userId !== undefined && (
          <>
            <Text>
              {user?.displayName ?? 'You'}, {connection}
            </Text>
            {calls.map(view => (
              <CallCard key={view.callId} view={view} act={act} />
            ))}
            <People act={act} />
            <Approval act={act} />
            <Button title="Sign out" onPress={() => act(() => me.signOut())} />
          </>
        )}
      </ScrollView>
    </SafeAreaView>
  )
}

type Act = (work: () => Promise<unknown>) => void

/** A contact's keys are new: the person compares the code, or goes on with what they wanted. */
function askAboutKeys(members: Readonly<Record<string, unknown>>, goOn: () => void, act: Act) {
  const [userId, listHash] = [String(members.userId), String(members.listHash)]
  const question = 'There is a new device, or somebody else is signed in under that name.'
  const ask = (code: string) =>
    Alert.alert('A contact’s keys are new', `${question} Compare the code with them, or go on?${code}`, [
      {
        text: 'Compare a code',
        onPress: () => act(async () => ask(`\n\n${await me.contacts.comparisonCode(userId)}`)),
      },
      { text: 'Go on', onPress: () => act(() => me.contacts.acceptKeys(userId, listHash).then(goOn)) },
      { text: 'Not now', style: 'cancel' },
    ])
  ask('')
}

/** Before an old invitation is answered, or one for a device that only the server calls the person's own. */
async function answer(call: Call, act: Act, evenIfOld = false): Promise<void> {
  try {
    await call.answer({ evenIfOld })
  } catch (error) {
    if (!hasCode(error, 'INVITATION_OLD', 'OWN_DEVICE_IN_SET')) throw error
    const { name } = error.members
    const goOn = () =>
      name === undefined
        ? answer(call, act, true)
        : call.acceptDevice(`${name}`).then(() => answer(call, act))
    Alert.alert('Answer?', error.sentence, [
      { text: 'Go on', onPress: () => act(goOn) },
      { text: 'Not now', style: 'cancel' },
    ])
  }
}

function CallCard({ view, act }: { view: CallView; act: Act }) {
  const { call, caller, isIncoming, isVerified, isHost, state, fingerprint } = view
  const isRinging = isIncoming && state === 'ringing'
  const verified = isVerified === undefined ? 'checking the key' : isVerified ? 'verified' : 'not verified'
  const hangUp = () => (isRinging ? call.decline() : isHost ? call.end() : call.leave())
  return (
    <>
      <Text>{isRinging ? `${shownCaller(caller.name, caller.isContact)} calls, ${verified}` : state}</Text>
      {fingerprint !== undefined && <Text>{fingerprint}</Text>}
      {isRinging && <Button title="Answer" onPress={() => act(() => answer(call, act))} />}
      <Button title={isRinging ? 'Decline' : 'Hang up'} onPress={() => act(hangUp)} />
    </>
  )
}

function People({ act }: { act: Act }) {
  const { contacts, requests, error } = useContacts(me)
  const share = async () => {
    const { link } = await me.contacts.shareLink()
    await Share.share({ message: link })
  }
  return (
    <>
      {error !== undefined && <Text>{error.sentence}</Text>}
      {requests.map(({ requestId, user }) => (
        <Button
          key={requestId}
          title={`Accept ${user.displayName}`}
          onPress={() => act(() => me.contacts.accept(user.userId))}
        />
      ))}
      {contacts.map(contact => (
        <Button
          key={contact.userId}
          title={`Call ${me.contacts.nameOf(contact)}`}
          onPress={() => act(() => callPerson(contact.userId, me.contacts.nameOf(contact)))}
        />
      ))}
      <Button title="Share a link" onPress={() => act(share)} />
      <Line
        label="A link or code that you were given"
        action="Open"
        onSubmit={text => act(() => openText(text, act))}
      />
    </>
  )
}

/** The person is shown before anything is asked of them. */
async function openText(text: string, act: Act): Promise<void> {
  const opened = await me.contacts.open(text)
  const name = opened.kind === 'link' ? opened.displayName : `User ${opened.userId}`
  Alert.alert(name, 'Ask them to be contacts?', [
    { text: 'Ask', onPress: () => act(() => opened.request()) },
    { text: 'Not now', style: 'cancel' },
  ])
}

/** A new phone waits until an old one approves it, with the same code on both screens. */
function Approval({ act }: { act: Act }) {
  const { listState } = useDevices(me)
  if (listState?.kind === 'waiting')
    return <Text>Approve this phone on another device: {listState.code}</Text>
  if (listState?.kind !== 'listed') return null
  return listState.waiting.map(device => (
    <Button
      key={device.deviceId}
      title={`Approve ${device.name} with the code ${device.code}`}
      onPress={() => act(() => me.devices.approve(device))}
    />
  ))
}

interface LineProps {
  readonly label: string
  readonly action: string
  readonly onSubmit: (value: string) => void
}

function Line({ label, action, onSubmit }: LineProps) {
  const [value, setValue] = useState('')
  const submit = () => {
    setValue('')
    onSubmit(value.trim())
  }
  return (
    <>
      <TextInput
        placeholder={label}
        value={value}
        onChangeText={setValue}
        autoCapitalize="none"
        autoCorrect={false}
      />
      <Button title={action} onPress={submit} disabled={value.trim() === ''} />
    </>
  )
}
