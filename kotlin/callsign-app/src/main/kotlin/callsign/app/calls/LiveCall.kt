/** One call of this device for an app: it shows the decisions of `DeviceCalls.kt`, and passes the app's commands on. */
package callsign.app.calls

import callsign.app.Call
import callsign.app.CallEnding
import callsign.app.CallEvent
import callsign.app.CallGateway
import callsign.app.CallParticipant
import callsign.app.CallState
import callsign.app.DeclineReason
import callsign.app.EpochKey
import callsign.app.EventStream
import callsign.app.KeyAsk
import callsign.app.KeyDevice
import callsign.app.LiveKitCall
import callsign.app.LiveKitSlot
import callsign.app.Person
import callsign.app.Without
import callsign.app.slotsOf
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asStateFlow
import kotlinx.coroutines.flow.transformWhile

/** The device as far as a call of it needs it. */
internal interface CallShell {
    val userId: ULong

    /** Returns when all of it is done. */
    suspend fun ask(inputOf: (command: Int) -> Input.Commanded): Call?

    fun keysOf(call: DeviceCall): List<EpochKey>

    /** With the names that count now. */
    fun named(person: Person): Person

    fun named(participant: CallParticipant): CallParticipant = participant.copy(name = named(participant.person).name)

    /** Asks for these people, or for those of them that a key can be sealed for. */
    suspend fun <Value> leaveOut(people: List<ULong>, without: Without, ask: suspend (List<ULong>) -> Value): Value
}

internal class LiveCall(private val shell: CallShell, @Volatile private var now: DeviceCall) : Call {
    @Volatile
    override var keys: List<EpochKey> = shell.keysOf(now)
        private set
    private val states = MutableStateFlow(stateOf(now.phase))
    private val people = MutableStateFlow(participantsNow())
    private val newest = MutableStateFlow(keys.firstOrNull())
    private val sending = MutableStateFlow(sendingKeyOf(now))
    private val forLiveKit = MutableStateFlow(liveKitNow())
    private val news = EventStream<CallEvent>(EVENTS_MAX, CallEvent::Missed)

    /** As it was decided. */
    fun become(call: DeviceCall) {
        val before = now
        now = call
        if (call.key != before.key || call.phase != before.phase) keys = shell.keysOf(call)
        newest.value = keys.firstOrNull()
        sending.value = sendingKeyOf(call)
        onNames()
        states.value = stateOf(call.phase)
    }

    /** People may have other names now. */
    fun onNames() {
        people.value = participantsNow()
        forLiveKit.value = liveKitNow()
    }

    fun tell(event: CallEvent) {
        news.tell(event)
        if (event == CallEvent.StateChanged(CallState.ENDED)) news.tellLast(CallEvent.Ended(checkNotNull(ending)))
    }

    override val callId: String get() = now.callId
    override val isIncoming: Boolean get() = now.isIncoming
    override val isVideo: Boolean get() = now.isVideo
    override val isOnGoing: Boolean get() = now.isOnGoing
    override val caller: Person get() = shell.named(now.caller)
    override val state: StateFlow<CallState> = states.asStateFlow()
    override val ending: CallEnding? get() = (now.phase as? Phase.Ended)?.reason
    override val isVerified: Boolean? get() = now.isVerified
    override val participants: StateFlow<List<CallParticipant>> = people.asStateFlow()
    override val self: CallParticipant? get() = people.value.find { it.userId == shell.userId }
    override val hostUserId: ULong? get() = now.record?.hostUserId
    override val isHost: Boolean get() = hostUserId == shell.userId
    override val roomId: Long? get() = now.record?.roomId
    override val startedAtMs: Long? get() = now.record?.startedAtMs
    override val key: StateFlow<EpochKey?> = newest.asStateFlow()
    override val sendingKey: StateFlow<EpochKey?> = sending.asStateFlow()
    override val liveKitKeys: Flow<LiveKitSlot> = slotsOf(forLiveKit)
    override val sealedFor: List<KeyDevice>
        get() {
            val call = now
            val key = call.newestKey.takeUnless { call.phase is Phase.Ended }
            return key?.set?.members.orEmpty().map(::keyDeviceOf)
        }
    override val media: CallGateway?
        get() {
            val call = now
            val record = call.record ?: return null
            val ready = call.media?.takeIf { record.media.state == "pending" && it.roomId == record.roomId }
            return ready?.gateway ?: record.media
        }
    override val events: Flow<CallEvent> = news.flow.transformWhile { event ->
        emit(event)
        event !is CallEvent.Ended
    }

    override suspend fun answer(evenIfOld: Boolean) = ask { Input.Answer(it, callId, evenIfOld) }

    override suspend fun acceptDevice(name: String) = ask { Input.AcceptDevice(it, callId, name) }

    override suspend fun decline(reason: DeclineReason) = ask { Input.Decline(it, callId, reason) }

    override suspend fun end() = ask { Input.End(it, callId) }

    override suspend fun leave() = ask { Input.Leave(it, callId) }

    override suspend fun invite(userIds: List<ULong>, without: Without) =
        shell.leaveOut(userIds, without) { able -> ask { Input.SendInvite(it, callId, able) } }

    override suspend fun remove(userId: ULong) = ask { Input.Remove(it, callId, userId) }

    override suspend fun renewKey() = ask { Input.Renew(it, callId) }

    override suspend fun resendKey() = ask { Input.Resend(it, callId) }

    override suspend fun useKey(epoch: Long) = ask { Input.UseKey(it, callId, epoch) }

    override suspend fun askForKey(userId: ULong?) = ask { Input.AskForKey(it, callId, userId) }

    override suspend fun grantKey(ask: KeyAsk) = ask { Input.Grant(it, callId, ask) }

    private fun participantsNow(): List<CallParticipant> {
        val call = now
        return call.record?.participants.orEmpty().map { shell.named(it).reachedAs(unreachableIn(call, it)) }
    }

    private fun liveKitNow() =
        LiveKitCall(callId, shell.userId, now.phase is Phase.Ended, keys, now.sending.epoch, people.value)

    private fun sendingKeyOf(call: DeviceCall): EpochKey? = keys.find { it.epoch == call.sending.epoch }

    private suspend fun ask(inputOf: (command: Int) -> Input.Commanded) {
        shell.ask(inputOf)
    }

    private companion object {
        const val EVENTS_MAX = 256
    }
}

/** The device of a name, `<userId>_<deviceId>`. */
private fun keyDeviceOf(name: String) = KeyDevice(userIdIn(name), name.substringAfter('_').toULong())
