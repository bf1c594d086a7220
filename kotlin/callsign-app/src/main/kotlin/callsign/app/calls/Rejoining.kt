/**
 * A call whose key is gone, with a restart or a long loss of the network: this device asks those in the call, comes back with the
 * first key that opens, and as the host makes another one when no device has it. It also answers such asks.
 */
package callsign.app.calls

import callsign.app.CallRecord
import callsign.app.CallsignException
import callsign.app.KeyAsk
import callsign.app.ParticipantState
import callsign.app.SetHints
import callsign.app.hasCode
import callsign.app.needId
import callsign.app.needNumber
import callsign.app.needText
import callsign.app.text
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonObject

/** Shows the call as one that this device asks into. */
internal fun Turn.ask(record: CallRecord) {
    begin(record, Phase.Rejoining(Ask.Asking))
    askAgain(record.callId)
}

/** The call could not be read for an ask: it is asked for with the record that is here. */
internal fun Turn.onNotRead(callId: String, failure: CallsignException) {
    val record = call(callId)?.record
    if (failure.isGone) closeSoon(callId) else if (record != null) ask(record)
}

/** Without a key it is asked for again after the next connection, and after a while. */
internal fun Turn.askAgain(callId: String) {
    if (setAsk(callId, Ask.Asking)) requestKey(callId, Purpose.SendAsk(callId))
}

/** An ask that is repeated has the nonce that it had. */
private fun Turn.requestKey(callId: String, purpose: Purpose) {
    val nonce = call(callId)?.nonce ?: number()
    change(callId) { copy(nonce = nonce) }
    request("POST", "call/$callId/request-rejoin", purpose, nonce = nonce)
}

internal fun Turn.onAskSent(callId: String, expiresInMs: Long) {
    val phase = call(callId)?.phase
    // It gave up meanwhile, or has the key.
    if (phase !is Phase.Asking || phase.ask != Ask.Asking) return
    val forMs = if (expiresInMs > 0) expiresInMs else AGAIN_MS
    setAsk(callId, Ask.Asked(nowMs + forMs))
    giveUpWhenAllAsk(callId)
}

/** An ask, or a return, failed. */
internal fun Turn.onNotBack(callId: String, failure: CallsignException) {
    if (call(callId)?.isAsking != true) return
    if (failure.hasCode("NO_ACTIVE_PARTICIPANT")) return returnWithNewKey(callId)
    if (failure.isGone) return closeSoon(callId)
    setAsk(callId, Ask.Pausing(nowMs + AGAIN_MS))
    report(callId, failure)
}

/** Those who had the key may all be gone. */
internal fun Turn.onHostChanged(callId: String) {
    if (call(callId)?.phase is Phase.Keyless) onNobodyGrants(callId)
}

/**
 * A device of a participant has no key: it gets the key once it verifies. One that is not the device which they had joined with
 * waits until the person here says so: a server could have made it up.
 */
internal fun Turn.onAsked(callId: String, event: JsonObject, command: Int) {
    val call = call(callId)
    if (call == null || !call.isPresent) return settle(command)
    val userId = event.needId("userId")
    if (call.newestKey != null) {
        val displayName = event.text("displayName").orEmpty()
        val deviceId = event.needId("deviceId")
        val ask = KeyAsk(userId, deviceId, displayName, event.needText("publicKeyHash"), event.text("nonce"))
        return request("GET", "call/$callId", Purpose.AskedRead(callId, command, ask))
    }
    change(callId) { copy(askers = askers - userId + userId) }
    giveUpWhenAllAsk(callId)
    settle(command)
}

internal fun Turn.onAskerRead(record: CallRecord, ask: KeyAsk, command: Int) {
    val callId = record.callId
    val call = call(callId)
    // The newest key is on its way here, or was this host's. The server would pass on the one before under the newest epoch.
    val epoch = call?.newestKey?.epoch ?: 0
    if (call != null && (epoch < record.keyEpoch || isOutdated(call, epoch))) {
        if (call.record?.hostUserId == device.userId && !call.isAsking) renew(callId)
        return settle(command)
    }
    val asker = record.participant(ask.userId)
    val held = call?.newestKey
    val isOut = asker == null || asker.state == ParticipantState.REMOVED || ask.userId in call?.removed.orEmpty()
    if (isOut || held == null) return settle(command)
    val hasJoined = asker.deviceId == ask.deviceId
    if (hasJoined && held.isFor(ask.deviceName)) return grant(callId, ask, command)
    if (!mayRenew(callId, record)) return settle(command)
    if (hasJoined) return grant(callId, ask, command)
    emit(callId, News.KeyAsked(ask))
    settle(command)
}

/** A device that the key is for gets it once more. Any other gets the next one, so it opens nothing of before. */
internal fun Turn.grant(callId: String, ask: KeyAsk, command: Int) {
    val held = call(callId)?.newestKey ?: return settle(command)
    if (!held.isFor(ask.deviceName)) {
        val admitted = Sender(ask.userId, ask.deviceId)
        change(callId) { copy(admitted = this.admitted.filter { it.userId != ask.userId } + admitted) }
        renew(callId)
        return settle(command)
    }
    val purpose = Purpose.GrantSeal(callId, command, ask, held.epoch)
    seal(held.key, Receivers.Asker(ask, held.set.keyMembers), Use(callId, held.epoch), purpose, ask.nonce)
}

internal fun Turn.onGrantSealed(sealed: Purpose.GrantSeal, text: String?) {
    val (callId, command, ask, epoch) = sealed
    val body = buildJsonObject {
        put("requesterUserId", JsonPrimitive("${ask.userId}"))
        put("requesterDeviceId", JsonPrimitive("${ask.deviceId}"))
        put("epoch", JsonPrimitive(epoch))
        text?.let { put("encryptedAESKey", JsonPrimitive(it)) }
    }
    // A newer key is on its way to all, the asker among them.
    request("POST", "call/$callId/accept-rejoin", Purpose.Command(callId, command, unless = "EPOCH_CONFLICT"), body)
}

/**
 * Asks while the call goes on: the key that this device has does not open what a member sends. Once for each member and key, which
 * may not be what is wrong. The host's key is the right one.
 */
internal fun Turn.askBeside(callId: String, command: Int?, userId: ULong?) {
    val call = call(callId)
    if (call?.phase != Phase.Active || call.record?.hostUserId == device.userId) return settle(command)
    if (userId != null && (userId in call.unopened || call.unopened.size >= UNOPENED_MAX)) return settle(command)
    change(callId) { copy(key = key.copy(isAsked = true), unopened = unopened + listOfNotNull(userId)) }
    requestKey(callId, Purpose.AskBeside(callId, command))
}

/** The call goes on with a key that this device was not given. */
internal fun Turn.onKeyMissing(call: DeviceCall, epoch: Long) {
    val isOld = epoch <= (call.newestKey?.epoch ?: 0)
    if (!isOld && call.isIn && call.record != null) ask(call.record)
}

/** No newer key came in time: what is sent is sealed with none that a person may have who is out. */
internal fun Turn.onOutdated(callId: String) {
    val call = call(callId) ?: return
    val record = call.record ?: return
    // Even if this device is alone: a server could say so for a moment.
    change(callId) { copy(sending = Sending(0, emptyList(), emptyList())) }
    if (!call.isAsking) ask(record)
}

/** The call was read, and has a newer key than this device, which may have missed it. */
internal fun Turn.onBehind(callId: String) {
    val call = call(callId) ?: return
    val record = call.record ?: return
    if (call.phase != Phase.Active || call.key.isAsked || call.rotation is Rotation.Renewing) return
    if (record.keyEpoch <= (call.newestKey?.epoch ?: 0)) return
    if (record.hostUserId == device.userId) planAgain(callId) else askBeside(callId, command = null, userId = null)
}

/** Takes the first answer that opens. A device that has a key takes a newer one, or the host's. */
internal fun Turn.onGranted(callId: String, event: JsonObject, command: Int) {
    val epoch = event.needNumber("keyEpoch")
    val from = Sender(event.needId("fromUserId"), event.needId("fromDeviceId"))
    val call = call(callId)
    if (!isWanted(callId, epoch, from.userId)) return settle(command)
    val held = call?.newestKey
    val stranger = if (held == null || held.isForSomeDeviceOf(from.userId)) null else notFromMember(from)
    val refusal = refusalOfEpoch(callId, epoch) ?: stranger
    if (refusal != null) {
        report(callId, refusal)
        return settle(command)
    }
    val purpose = Purpose.GrantedOpen(callId, command, epoch)
    open(event.needText("encryptedAESKey"), listOf(from), Use(callId, epoch), SetHints(setsIn(call)), purpose, call?.nonce)
}

internal fun Turn.onGrantOpened(callId: String, key: HeldKey, command: Int) {
    if (!isWanted(callId, key.epoch, key.fromUserId)) return settle(command)
    val refusal = refusalOfSet(callId, key, call(callId)?.record)
    if (refusal == null) return takeGiven(callId, key, command)
    report(callId, refusal)
    settle(command)
}

/** The host's key counts. Where another device was faster, the host has a moment to give one. */
internal fun Turn.takeGiven(callId: String, key: HeldKey, command: Int) {
    val call = call(callId) ?: return settle(command)
    if (isOutdated(call, key.epoch)) return settle(command)
    val host = call.record?.run { participant(hostUserId) }
    val isHosts = key.fromUserId == call.record?.hostUserId
    val isAwaited = host != null && host.state == ParticipantState.JOINED && host.userId != device.userId
    if (isHosts && call.phase == Phase.Active && !call.key.isAsked) {
        hold(callId, key)
        return settle(command)
    }
    if (isHosts || !isAwaited) return comeBack(callId, key, command)
    val offer = call.offer
    val atMs = offer?.atMs ?: (nowMs + HOST_WAIT_MS)
    if (offer == null || key.epoch > offer.key.epoch)
        change(callId) { copy(offer = Offer(key.copy(isProvisional = true), atMs)) }
    settle(command)
}

/** The host has given none. */
internal fun Turn.onOfferDue(callId: String) {
    val key = call(callId)?.offer?.key ?: return
    change(callId) { copy(offer = null) }
    if (isWanted(callId, key.epoch, key.fromUserId)) comeBack(callId, key, command = null)
}

/** Into the call, with the key that this device was given. */
internal fun Turn.comeBack(callId: String, key: HeldKey, command: Int?) {
    setAsk(callId, Ask.Returning)
    request("POST", "call/$callId/rejoin", Purpose.ComeBack(callId, command, key))
}

internal fun Turn.onCameBack(record: CallRecord, key: HeldKey, command: Int?) {
    settle(command)
    val callId = record.callId
    val call = call(callId) ?: return leaveUnknown(callId)
    // This answer is of before.
    if (!call.isIn) return
    // It has made a newer one meanwhile.
    val isWanting = call.isAsking || call.key.isAsked
    if (!isWanting && (call.newestKey?.epoch ?: 0) >= key.epoch) return change(callId) { copy(record = record) }
    // It was sent before this device was lost, and there is a newer one since.
    if (key.epoch < record.keyEpoch || isOutdated(call, key.epoch)) return ask(record)
    change(callId) { copy(askers = emptyList()) }
    enter(record, key)
}

/** The host returns, to make the key. */
internal fun Turn.onReturned(record: CallRecord) {
    val callId = record.callId
    val call = call(callId) ?: return leaveUnknown(callId)
    if (!call.isAsking) return
    // What was sent before it is older.
    change(callId) { copy(record = record) }
    if (record.hostUserId == device.userId) return renew(callId, returning = record)
    enterPhase(callId, Phase.Keyless(Ask.Pausing(nowMs + AGAIN_MS)))
}

/** An ask was not answered in time, or no one is left to answer. */
internal fun Turn.onNobodyGrants(callId: String) {
    val call = call(callId)
    val phase = call?.phase as? Phase.Asking ?: return
    val isHost = call.record?.hostUserId == device.userId
    val ask = if (phase.ask == Ask.Returning) phase.ask else Ask.Pausing(nowMs + AGAIN_MS)
    enterPhase(callId, Phase.Keyless(ask))
    if (isHost) returnWithNewKey(callId)
}

private fun Turn.isWanted(callId: String, epoch: Long, fromUserId: ULong): Boolean {
    val call = call(callId) ?: return false
    val held = call.newestKey
    val isHosts = fromUserId == call.record?.hostUserId
    val isBetter = epoch > (held?.epoch ?: 0) || (epoch == held?.epoch && isHosts)
    val isOpen = call.key.isAsked || (isHosts && held?.isProvisional == true)
    return call.isAsking || (isOpen && call.phase == Phase.Active && isBetter)
}

/** No device has the key any more: the host makes another one, once for all that say so. */
private fun Turn.returnWithNewKey(callId: String) {
    val phase = call(callId)?.phase
    if (phase !is Phase.Asking || phase.ask == Ask.Returning) return
    setAsk(callId, Ask.Returning)
    request("POST", "call/$callId/rejoin", Purpose.Return(callId))
}

/** When all other devices ask too, none will answer: waiting is pointless. */
private fun Turn.giveUpWhenAllAsk(callId: String) {
    val call = call(callId)
    if (call?.isAsking != true) return
    val others = call.record?.participants.orEmpty().filter { it.state == ParticipantState.JOINED && it.userId != device.userId }
    if (others.all { it.userId in call.askers }) onNobodyGrants(callId)
}

/** Whether this device asks at all. */
private fun Turn.setAsk(callId: String, ask: Ask): Boolean {
    val phase = call(callId)?.phase as? Phase.Asking ?: return false
    change(callId) { copy(phase = phase.asking(ask)) }
    return true
}

private const val AGAIN_MS = 30_000L
private const val HOST_WAIT_MS = 5_000L

/** The names of those who send are the gateway's word. */
private const val UNOPENED_MAX = 8
