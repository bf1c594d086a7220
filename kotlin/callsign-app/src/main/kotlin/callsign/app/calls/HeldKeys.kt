/** The keys of a call by epoch: which one frames are sealed with, and how long older ones open frames. */
package callsign.app.calls

import callsign.app.CallRecord
import callsign.app.CallsignException
import callsign.app.CallsignException.LocalCode

/**
 * Keeps a key. A device that has just come back, or had none, sends with it at once, as all in the call do; so does every device
 * after a person has left. Another key of an epoch that is held is taken from the host alone, in place of a provisional one.
 */
internal fun Turn.hold(callId: String, key: HeldKey, wasAway: Boolean = false, reason: KeysReason? = null) {
    val call = call(callId) ?: return
    // Also one of this device's own, which was on its way when they were removed.
    refusalOfSet(callId, key, record = null)?.let { return report(callId, it) }
    val same = call.key.held.find { it.epoch == key.epoch }
    val isOther = same != null && same.key != key.key
    if (same != null && isOther && (!same.isProvisional || key.isProvisional)) return report(callId, keyChanged())
    val others = call.key.held.filter { it.epoch != key.epoch }
    val held = (listOf(key) + others).sortedByDescending { it.epoch }.take(KEPT_MAX)
    // The host may answer the ask yet.
    val nonce = call.nonce.takeIf { key.isProvisional }
    change(callId) { copy(key = KeyState(isAsked = false, held), nonce = nonce, offer = null) }
    val newest = held.first()
    val before = call.newestKey
    if (newest.key != before?.key || newest.epoch != before.epoch) {
        change(callId) { copy(unopened = emptyList(), heldAtMs = nowMs) }
        emit(callId, News.Key(newest))
        noteOpened(callId, newest.epoch)
    }
    val sending = call.sending
    if (isOther && sending.epoch == key.epoch) emit(callId, News.Sending(key))
    val isUrgent = reason == KeysReason.LEAVE && key.epoch > sending.epoch
    if (sending.epoch == 0L || wasAway || call.isAsking || isUrgent) return use(callId, key.epoch, reason)
    val due = Due(key.epoch, nowMs + SPREAD_MS)
    if (key.epoch > sending.epoch) change(callId) { copy(sending = sending.copy(uses = sending.uses.with(due))) }
    else if (key.epoch < sending.epoch) change(callId) { copy(sending = sending.copy(drops = sending.drops.with(due))) }
}

/** All have it by now. Frames of the ones before may still be on their way: after a rotation by time they are opened for longer. */
internal fun Turn.use(callId: String, epoch: Long, reason: KeysReason? = null) {
    val call = call(callId) ?: return
    val held = call.key.held.find { it.epoch == epoch } ?: return
    val (present, uses, drops) = call.sending
    // A newer one may have been used at once, after a return to the call.
    if (epoch <= present) return
    val atMs = nowMs + if (reason == KeysReason.LEAVE) SPREAD_MS else KEPT_MS
    val older = call.key.held.filter { it.epoch < epoch }
    val dropping = older.fold(drops) { all, one -> all.with(Due(one.epoch, atMs)) }
    change(callId) { copy(sending = Sending(epoch, uses.filter { it.epoch > epoch }, dropping)) }
    emit(callId, News.Sending(held))
}

/** Its frames can't be opened any more. */
internal fun Turn.drop(callId: String, epoch: Long) = change(callId) {
    copy(
        key = key.copy(held = key.held.filter { it.epoch != epoch }),
        sending = sending.copy(drops = sending.drops.filter { it.epoch != epoch }),
    )
}

/** The newest key seals frames until then, even if a server withholds newer ones. */
internal val DeviceCall.outdatedAtMs: Long
    get() = heldAtMs + periodMsOf(record) + KEPT_MS

/** Whether this key, or a newer one, was in use for as long as one may be: it does not come back. */
internal fun Turn.isOutdated(call: DeviceCall, epoch: Long): Boolean =
    epoch <= (call.newestKey?.epoch ?: 0) && nowMs >= call.outdatedAtMs

/** The time of a key. No server has keys made all the time, or none. */
internal fun periodMsOf(record: CallRecord?): Long = (record?.keyRotationMs ?: PERIOD_MS).coerceIn(PERIOD_MIN_MS, PERIOD_MS)

/** A key of the same epoch that comes once more puts nothing off. */
private fun List<Due>.with(due: Due): List<Due> = if (any { it.epoch == due.epoch }) this else this + due

private fun keyChanged(): CallsignException {
    val sentence = "Another key was sent for an epoch of the call whose key is here already."
    return CallsignException(LocalCode.CALL_KEY_CHANGED, sentence)
}

/** More than the two that a call has unless keys are made faster than they are used. */
private const val KEPT_MAX = 4

/** From a key's arrival to its use, and after a person has left to the end of the one before. */
private const val SPREAD_MS = 5_000L

/** From a key's use to the end of the one before, which frames on their way may still need. */
private const val KEPT_MS = 60_000L

/** The host makes a key as often, and no server makes it less. */
private const val PERIOD_MS = 600_000L
private const val PERIOD_MIN_MS = 60_000L
