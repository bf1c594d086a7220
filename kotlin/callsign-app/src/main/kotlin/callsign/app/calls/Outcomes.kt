/** Outcomes of acts. */
package callsign.app.calls

import callsign.app.CallEnding
import callsign.app.CallRecord
import callsign.app.CallsignException
import callsign.app.callRecordOf
import callsign.app.endingOf
import callsign.app.hasCode
import callsign.app.members
import callsign.app.needDurationMs
import callsign.app.text
import kotlinx.serialization.json.JsonObject

internal fun Turn.onOutcome(input: Input.Outcome) {
    val waiting = device.waiting.find { it.act == input.act } ?: return
    device = device.copy(waiting = device.waiting - waiting)
    when (input) {
        is Input.Done -> onDone(waiting.purpose, input)
        is Input.Failed -> onFailed(waiting.purpose, input.failure)
    }
}

private fun Turn.onDone(purpose: Purpose, done: Input.Done) {
    val record by lazy(LazyThreadSafetyMode.NONE) { callRecordOf(done.body) }
    fun opened(epoch: Long) =
        HeldKey(epoch, done.key ?: 0, done.from?.userId ?: 0u, done.set, unlisted = done.unlisted)
    when (purpose) {
        is Purpose.StartSeal -> onStartSealed(purpose.command, done.texts, done.set)
        is Purpose.StartCall -> onStarted(purpose.command, record)
        is Purpose.CrossedPending -> onCrossed(purpose.command, purpose.callId, itemsIn(done.body), purpose.failure)
        is Purpose.CrossedOpen -> onCrossedOpened(purpose, opened(purpose.ringing.epoch))
        is Purpose.Command -> settle(purpose.command)
        is Purpose.Leave -> {
            onLeft(purpose.callId)
            settle(purpose.command)
        }
        is Purpose.End -> {
            close(purpose.callId, done.body.text("endReason")?.let(::endingOf) ?: CallEnding.HANGUP)
            settle(purpose.command)
        }
        is Purpose.JoinFind -> onFound(record, purpose.command)
        is Purpose.InvitedRead ->
            onInvitedRead(record, purpose.key)?.let { onKeyRefused(purpose.callId, purpose.key, it) }
        is Purpose.InvitedOpen -> {
            val (callId, key) = purpose
            val refusal = refusalOfSet(callId, opened(0), purpose.record) ?: refusalOfAge(callId, done.sealedAgoMs)
            if (refusal != null) onKeyRefused(callId, key, refusal)
            else if (onInvitedOpened(callId, key, opened(0))) onInvitedKey(callId)
        }
        is Purpose.Clear -> onCleared(purpose.callId, purpose.other, done.body.text("endReason"))
        is Purpose.Join -> onJoined(record)
        is Purpose.JoinedOpen -> onJoinedOpened(purpose.record, opened(purpose.record.keyEpoch))
        is Purpose.KeptLeave -> {
            onLeft(purpose.callId)
            leaveKept(purpose.command, purpose.kept, leftAfter(purpose))
        }
        is Purpose.Pending -> {
            onPending(itemsIn(done.body), purpose.command, purpose.kept)
            settleWhenDone(purpose.command)
        }
        is Purpose.Restore -> {
            onRestored(purpose.callId, record, purpose.command)
            settleWhenDone(purpose.command)
        }
        is Purpose.GiveUp -> {
            close(purpose.callId, CallEnding.KEY_LOST)
            settleWhenDone(purpose.command)
        }
        is Purpose.Refresh -> {
            onRefreshed(purpose.callId, record, purpose.again)
            settleWhenDone(purpose.command)
        }
        is Purpose.Watch -> onWatched(purpose.callId)
        is Purpose.KeyUpdateRead -> {
            showIfNewer(purpose.callId, record)
            openUpdate(purpose.callId, purpose.event, purpose.command, record)
        }
        is Purpose.KeyUpdate -> onUpdateOpened(purpose, opened(purpose.epoch))
        is Purpose.KeylessRead -> {
            if (call(purpose.callId)?.isIn == true) ask(record)
            settle(purpose.command)
        }
        is Purpose.SendAsk -> onAskSent(purpose.callId, done.body.needDurationMs("expiresIn"))
        is Purpose.Return -> onReturned(record)
        is Purpose.AskBeside -> settle(purpose.command)
        is Purpose.GrantedOpen -> onGrantOpened(purpose.callId, opened(purpose.epoch), purpose.command)
        is Purpose.ComeBack -> onCameBack(record, purpose.key, purpose.command)
        is Purpose.AskedRead -> onAskerRead(record, purpose.ask, purpose.command)
        is Purpose.GrantSeal -> onGrantSealed(purpose, done.text)
        is Purpose.KeysRead -> onKeysRead(purpose.sending, record)
        is Purpose.KeysSeal -> onKeysSealed(purpose.sending, done.texts, purpose.sending.set ?: done.set, done.without)
        is Purpose.Keys -> onKeysSent(purpose.sending)?.let { begin(it, Phase.Active) }
        is Purpose.Remove -> {
            if (purpose.command != null) renewWithout(purpose.callId)
            settle(purpose.command)
        }
        is Purpose.InviteRead -> onInviteRead(purpose.invite, record)
        is Purpose.InviteSeal -> onInviteSealed(purpose.invite, done.texts, done.set)
        is Purpose.SendInvite -> onInvited(purpose.invite, record)
    }
}

private fun Turn.onFailed(purpose: Purpose, failure: CallsignException) {
    when (purpose) {
        is Purpose.StartSeal -> onNotStarted(purpose.command, failure)
        is Purpose.StartCall -> onNotStarted(purpose.command, failure)
        is Purpose.CrossedPending -> onCrossed(purpose.command, purpose.callId, emptyList(), purpose.failure)
        is Purpose.CrossedOpen -> onCrossedRefused(purpose.command, purpose.ringing, purpose.failure)
        is Purpose.Leave -> {
            // It has ended here in any case; where the server knows of no such call any more, it need not be told again.
            if (failure.isGone) onLeft(purpose.callId) else if (failure.hasCode("NO_ANSWER")) leaveAgain(purpose.callId)
            settle(purpose.command)
        }
        is Purpose.InvitedRead -> onKeyRefused(purpose.callId, purpose.key, failure)
        is Purpose.InvitedOpen -> onKeyRefused(purpose.callId, purpose.key, failure)
        is Purpose.Clear -> onNotCleared(purpose.callId, purpose.other, failure)
        is Purpose.Join -> {
            val isOver = failure.hasCode("CALL_ENDED", "CALL_NOT_ACTIVE")
            if (!isOver || !startsAgain(purpose.callId)) onNotJoined(purpose.callId, failure)
        }
        is Purpose.JoinedOpen -> onJoinedRefused(purpose.record, failure)
        is Purpose.KeptLeave -> {
            if (failure.isUnheard) return notRestored(purpose.command, failure)
            onLeft(purpose.callId)
            leaveKept(purpose.command, purpose.kept, leftAfter(purpose))
        }
        is Purpose.Pending -> notRestored(purpose.command, failure)
        is Purpose.Restore -> {
            if (!failure.isGone) return notRestored(purpose.command, failure)
            onRestored(purpose.callId, null, purpose.command)
            settleWhenDone(purpose.command)
        }
        is Purpose.GiveUp -> {
            // A callee may have answered.
            if (failure.isUnheard) sendLeave(purpose.callId)
            close(purpose.callId, CallEnding.KEY_LOST)
            failConnected(purpose.command, failure)
        }
        is Purpose.Refresh -> {
            val command = purpose.command
            onNotRefreshed(purpose.callId, failure, command)
            // The shell connects once more.
            if (command != null && failure.isUnheard) failConnected(command, failure) else settleWhenDone(command)
        }
        is Purpose.Watch -> onNotWatched(purpose.callId, failure)
        is Purpose.KeyUpdateRead -> onUpdateRefused(purpose.callId, purpose.command, purpose.epoch, failure)
        is Purpose.KeyUpdate -> onUpdateRefused(purpose.callId, purpose.command, purpose.epoch, failure)
        is Purpose.KeylessRead -> {
            onNotRead(purpose.callId, failure)
            settle(purpose.command, failure)
        }
        is Purpose.SendAsk -> onNotBack(purpose.callId, failure)
        is Purpose.Return -> {
            onNotBack(purpose.callId, failure)
            leaveUnheard(purpose.callId, failure)
        }
        is Purpose.ComeBack -> {
            val (callId, command) = purpose
            onNotBack(callId, failure)
            leaveUnheard(callId, failure)
            // The server may have it in, and messages of before that are next in the queue.
            if (failure.hasCode("NO_ANSWER") && call(callId)?.isIn == true)
                return request("GET", "call/$callId", Purpose.KeylessRead(callId, command))
            settle(command)
        }
        is Purpose.KeysRead -> onKeysFailed(purpose.sending, failure)
        is Purpose.KeysSeal -> onKeysFailed(purpose.sending, failure)
        is Purpose.Keys -> {
            onKeysFailed(purpose.sending, failure)
            if (failure.isUnheard) onUnheard(purpose.callId)
        }
        is Purpose.Remove -> {
            if (!purpose.isKnown) onNotRemoved(purpose.callId, purpose.userId)
            onRefused(purpose, failure)
        }
        is Purpose.InviteRead -> onInviteFailed(purpose.invite, failure)
        is Purpose.InviteSeal -> onInviteFailed(purpose.invite, failure)
        is Purpose.SendInvite -> {
            if (failure.isUnheard) onUnheard(purpose.callId)
            onInviteFailed(purpose.invite, failure)
        }
        is Purpose.Command ->
            if (failure.code == purpose.unless) settle(purpose.command) else onRefused(purpose, failure)
        is Purpose.End,
        is Purpose.JoinFind,
        is Purpose.AskBeside,
        is Purpose.GrantedOpen,
        is Purpose.AskedRead,
        is Purpose.GrantSeal,
        -> onRefused(purpose, failure)
    }
}

private fun Turn.onRefused(purpose: Purpose, failure: CallsignException) {
    if (failure.hasCode("CALL_ENDED")) purpose.callId?.let(::closeSoon)
    settle(purpose.command, failure)
}

/** Those that were to be left after this one. */
private fun leftAfter(purpose: Purpose.KeptLeave): List<String> {
    val leaving = purpose.kept.leaving
    return leaving.drop(leaving.indexOf(purpose.callId) + 1)
}

/** It has ended here meanwhile, and the server may have let this device in. */
private fun Turn.leaveUnheard(callId: String, failure: CallsignException) {
    if (call(callId) == null && failure.isUnheard) leaveUnknown(callId)
}

private fun Turn.onKeyRefused(callId: String, key: InvitedKey, failure: CallsignException) {
    if (onInvitedRefused(callId, key, failure)) onInvitedKey(callId, failure)
}

private fun Turn.onKeysFailed(sending: NewKey, failure: CallsignException) {
    if (onKeysNotSent(sending, failure)) onNotBack(sending.callId, failure)
}

private fun Turn.onInviteFailed(asked: Invite, failure: CallsignException) {
    if (failure.isChanged && asked.triesLeft > 1) invite(asked.copy(triesLeft = asked.triesLeft - 1))
    else settle(asked.command, failure)
}

private fun itemsIn(body: JsonObject): List<CallRecord> = body.members("items").map(::callRecordOf)
