/** Calls on the system's own screens: CallKit on iOS, ConnectionService on Android; and the pushes that start them. */

import { type Call, type CallEnding, callUuid } from '@callsign/sdk/app'
import {
  getMessaging,
  getToken,
  onMessage,
  onTokenRefresh,
  setBackgroundMessageHandler,
} from '@react-native-firebase/messaging'
import { Platform } from 'react-native'
import CallKeep, { CONSTANTS } from 'react-native-callkeep'
import VoipPush from 'react-native-voip-push-notification'
import { me } from './me.ts'
import { bundleId } from './pins.ts'

const { FAILED, REMOTE_ENDED, UNANSWERED, ANSWERED_ELSEWHERE, DECLINED_ELSEWHERE } =
  CONSTANTS.END_CALL_REASONS
const isIos = Platform.OS === 'ios'
const OPTIONS = {
  ios: {
    appName: 'My phone app',
    supportsVideo: true,
    maximumCallGroups: '1',
    maximumCallsPerCallGroup: '1',
  },
  android: {
    alertTitle: 'Calls',
    alertDescription: 'Calls ring on the screen of the phone. That needs a phone account.',
    cancelButton: 'Not now',
    okButton: 'Go on',
    additionalPermissions: [],
  },
}
/** Names of calls that the system shows. */
const shown = new Set<string>()
/** Answered on the system's screen before the call was here. */
const answered = new Set<string>()

/** Once at each start, before any screen. */
export function listen(): void {
  me.on('ringing', ring)
  me.on('resumed', call =>
    show(call.callId, shownCaller(call.caller.name, call.caller.isContact), call.isVideo),
  )
  CallKeep.addEventListener('answerCall', ({ callUUID }) => void answer(callUUID.toLowerCase()))
  CallKeep.addEventListener('endCall', ({ callUUID }) => void hangUp(callUUID.toLowerCase()))
  CallKeep.addEventListener('didLoadWithEvents', events => {
    for (const { name, data } of events) {
      if (name === 'RNCallKeepPerformAnswerCallAction') void answer(data.callUUID.toLowerCase())
    }
  })
  if (isIos) {
    VoipPush.addEventListener('notification', payload => void onPush(payload as Record<string, unknown>))
    VoipPush.addEventListener('didLoadWithEvents', events => {
      for (const { name, data } of events) {
        if (name === VoipPush.RNVoipPushRemoteNotificationReceivedEvent) {
          void onPush(data as Record<string, unknown>)
        }
      }
    })
  } else {
    // A push starts the app without a screen, and `setup` has not run then.
    CallKeep.registerPhoneAccount(OPTIONS)
    CallKeep.registerAndroidEvents()
    const messaging = getMessaging()
    setBackgroundMessageHandler(messaging, ({ data = {} }) => onPush(data))
    onMessage(messaging, ({ data = {} }) => onPush(data))
  }
}

/** Asks for permissions, and tells the server how this phone is woken. At each start and after each sign-in. */
export async function beReachable(): Promise<void> {
  await CallKeep.setup(OPTIONS)
  if (isIos) {
    VoipPush.addEventListener(
      'register',
      token => void me.devices.putPushTokens({ apnsVoipToken: token, bundleId }),
    )
    VoipPush.registerVoipToken()
  } else {
    CallKeep.setAvailable(true)
    const messaging = getMessaging()
    onTokenRefresh(messaging, token => void me.devices.putPushTokens({ fcmToken: token }))
    await me.devices.putPushTokens({ fcmToken: await getToken(messaging) })
  }
}

/** An outgoing call. */
export async function call(userId: string, name: string): Promise<void> {
  const outgoing = await me.call([userId])
  const uuid = callUuid(outgoing.callId)
  shown.add(uuid)
  CallKeep.startCall(uuid, name, name, 'generic', outgoing.isVideo)
  outgoing.on('state', state => {
    if (state !== 'active') return
    if (isIos) CallKeep.reportConnectedOutgoingCallWithUUID(uuid)
    else CallKeep.setCurrentCallActive(uuid)
  })
  endWith(outgoing)
}

/** Resolves when it rings no more: Android lets the app run for as long. */
async function onPush(payload: Readonly<Record<string, unknown>>): Promise<void> {
  const action = await me.onPush(payload)
  if (action.show === 'ringing') {
    // On iOS the AppDelegate has reported it already, before JavaScript ran.
    show(action.callId, shownCaller(action.callerName, action.isContact), action.isVideo)
    await hasRung(action.callId, action.forMs)
  } else if (action.show === 'over') {
    if (isIos) hide(action.uuid, UNANSWERED)
  } else if (action.show === 'stop-ringing') {
    hide(action.uuid, endReason(action.reason === 'ended' ? 'unknown' : action.reason))
  }
}

function ring(call: Call): void {
  show(call.callId, shownCaller(call.caller.name, call.caller.isContact), call.isVideo)
  endWith(call)
  if (answered.delete(callUuid(call.callId))) void answer(callUuid(call.callId))
}

/** A stranger may have chosen a contact's name. */
export function shownCaller(name: string, isContact: boolean | undefined): string {
  return isContact === false ? `${name} (not a contact)` : name
}

function endWith(call: Call): void {
  call.on('ended', ({ reason }) => hide(callUuid(call.callId), endReason(reason)))
}

function show(callId: string, name: string, isVideo: boolean): void {
  const uuid = callUuid(callId)
  if (shown.has(uuid)) return
  shown.add(uuid)
  CallKeep.displayIncomingCall(uuid, name, name, 'generic', isVideo)
}

function hide(uuid: string, reason: number): void {
  answered.delete(uuid)
  shown.delete(uuid)
  CallKeep.reportEndCallWithUUID(uuid, reason)
}

async function answer(uuid: string): Promise<void> {
  const call = callOf(uuid)
  if (call === undefined) {
    answered.add(uuid)
    return
  }
  try {
    await call.answer()
    if (!isIos) CallKeep.setCurrentCallActive(uuid)
    CallKeep.backToForeground()
  } catch {
    // Refused keys come by `keys` as well, which the app shows.
    hide(uuid, FAILED)
  }
}

async function hangUp(uuid: string): Promise<void> {
  shown.delete(uuid)
  answered.delete(uuid)
  const call = callOf(uuid)
  if (call?.isIncoming && call.state === 'ringing') await call.decline()
  else if (call?.isHost) await call.end()
  else await call?.leave()
}

function callOf(uuid: string): Call | undefined {
  return me.calls.find(({ callId }) => callUuid(callId) === uuid)
}

async function hasRung(callId: string, forMs: number): Promise<void> {
  const uuid = callUuid(callId)
  const over = new Promise<void>(resolve => setTimeout(resolve, forMs))
  const call = callOf(uuid)
  await (call === undefined ? over : Promise.race([over, call.once('state')]))
  // The server never told of the call: there was no network.
  if (callOf(uuid) === undefined && shown.has(uuid)) hide(uuid, UNANSWERED)
}

function endReason(reason: CallEnding): number {
  if (reason === 'answered_elsewhere' || reason === 'moved') return ANSWERED_ELSEWHERE
  if (reason === 'declined_elsewhere' || reason === 'busy_elsewhere') return DECLINED_ELSEWHERE
  return reason === 'missed' || reason === 'unanswered' ? UNANSWERED : REMOTE_ENDED
}
