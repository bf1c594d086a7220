/** One step of a device: an input comes in, and with the device as it is then go the acts. */
package callsign.app.calls

import callsign.app.CallsignException
import callsign.app.SetHints
import kotlinx.serialization.json.JsonObject

/** One step: the device as it becomes, and the acts so far. */
internal class Turn(var device: Device, val nowMs: Long) {
    val acts = ArrayList<Act>()
    private val made = ArrayList<Int>()

    val serverMs: Long get() = nowMs + device.clock.aheadMs

    /** Null for one that is not there, or has ended. */
    fun call(callId: String): DeviceCall? = device.calls.find { it.callId == callId && it.phase !is Phase.Ended }

    /** One that has ended stays as it is. */
    fun change(callId: String, change: DeviceCall.() -> DeviceCall) {
        val calls = device.calls.map { if (it.callId == callId && it.phase !is Phase.Ended) it.change() else it }
        device = device.copy(calls = calls)
    }

    /** With an event where the app sees another state. */
    fun enterPhase(callId: String, phase: Phase) {
        val before = call(callId) ?: return
        change(callId) { copy(phase = phase) }
        val state = stateOf(phase)
        if (state != stateOf(before.phase)) emit(callId, News.State(state))
    }

    fun act(act: Act) {
        acts += act
    }

    fun emit(callId: String, news: News) = act(Act.Emit(callId, news))

    /** Overwrites those of these keys, and of all that were made in this step, that nothing has a use for any more. */
    fun wipeUnused(keys: List<Int>) {
        val unused = (keys + made).distinct() - keysIn(device).toSet()
        if (unused.isNotEmpty()) act(Act.Wipe(unused))
    }

    /** Notes it for the next start, once in a step. */
    fun keep(kept: Kept) {
        val before = device.kept
        if (kept == before && kept.opened === before.opened) return
        device = device.copy(kept = kept)
        val noted = acts.indexOfFirst { it is Act.Keep }
        if (noted < 0) act(Act.Keep(kept)) else acts[noted] = Act.Keep(kept)
    }

    fun settle(command: Int?, error: CallsignException? = null, callId: String? = null) {
        if (command != null) act(Act.Settle(command, callId, error))
    }

    fun settleAll(commands: List<Int>, error: CallsignException? = null, callId: String? = null) {
        for (command in commands) settle(command, error, callId)
    }

    fun request(method: String, path: String, purpose: Purpose, body: JsonObject? = null, nonce: Int? = null) {
        act(Act.Request(wait(purpose), method, path, body, nonce))
    }

    fun open(text: String, from: List<Sender>, use: Use, hints: SetHints, purpose: Purpose, nonce: Int? = null) {
        act(Act.Open(wait(purpose), number(), text, from, use, hints, nonce))
    }

    fun seal(key: Int, receivers: Receivers, use: Use, purpose: Purpose, nonce: String? = null) {
        act(Act.Seal(wait(purpose), key, receivers, use, nonce))
    }

    fun makeKey(): Int {
        val key = number()
        made += key
        act(Act.Make(key))
        return key
    }

    fun wait(purpose: Purpose): Int {
        val act = number()
        device = device.copy(waiting = device.waiting + Waiting(act, purpose))
        return act
    }

    fun number(): Int {
        device = device.copy(count = device.count + 1)
        return device.count
    }
}
