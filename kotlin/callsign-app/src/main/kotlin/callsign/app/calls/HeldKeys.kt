/** The keys of a call by epoch: which one frames are sealed with, and how long older ones open frames. */
package callsign.app.calls

/** Keeps a key. A device that has just come back, or had none, sends with it at once, as all in the call do. */
internal fun Turn.hold(callId: String, key: HeldKey, wasAway: Boolean = false) {
    val call = call(callId) ?: return
    val others = call.key.held.filter { it.epoch != key.epoch }
    val held = (listOf(key) + others).sortedByDescending { it.epoch }.take(KEPT_MAX)
    change(callId) { copy(key = KeyState(isAsked = false, held)) }
    val newest = held.first()
    val before = call.newestKey
    if (newest.key != before?.key || newest.epoch != before.epoch) {
        change(callId) { copy(unopened = emptyList()) }
        emit(callId, News.Key(newest))
    }
    val sending = call.sending
    if (sending.epoch == 0L || wasAway || call.isAsking) return use(callId, key.epoch)
    val due = Due(key.epoch, nowMs + SPREAD_MS)
    if (key.epoch > sending.epoch) change(callId) { copy(sending = sending.copy(uses = sending.uses.with(due))) }
    else if (key.epoch < sending.epoch) change(callId) { copy(sending = sending.copy(drops = sending.drops.with(due))) }
}

/** All have it by now. Frames of the ones before may still be on their way. */
internal fun Turn.use(callId: String, epoch: Long) {
    val call = call(callId) ?: return
    val held = call.key.held.find { it.epoch == epoch } ?: return
    val (present, uses, drops) = call.sending
    // A newer one may have been used at once, after a return to the call.
    if (epoch <= present) return
    val older = call.key.held.filter { it.epoch < epoch }
    val dropping = older.fold(drops) { all, one -> all.with(Due(one.epoch, nowMs + SPREAD_MS)) }
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

/** A key of the same epoch that comes once more puts nothing off. */
private fun List<Due>.with(due: Due): List<Due> = if (any { it.epoch == due.epoch }) this else this + due

/** More than the two that a call has unless keys are made faster than they are used. */
private const val KEPT_MAX = 4

/** From a key's arrival to its use, and from its use to the end of the one before. */
private const val SPREAD_MS = 5_000L
