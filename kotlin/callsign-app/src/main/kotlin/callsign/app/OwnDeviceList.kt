/**
 * The user's own device list, which says for which of their devices other people encrypt. This device makes the first one,
 * approves further devices once its user says so, leaves removed ones out, or starts over when the rest is lost.
 */
package callsign.app

import callsign.verify.ListedDevice
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock

/** Where this device stands. */
public sealed interface OwnListState {
    /** The user has several devices and no list. `startOver` makes one. */
    public data object None : OwnListState

    /** A device of the list has to approve this one, which shows [code]. */
    public data class Waiting(public val code: String) : OwnListState

    /** This device is on the list, and can approve those that wait. */
    public data class Listed(public val waiting: List<WaitingDevice>) : OwnListState
}

/** [code] is twenty digits that the device shows, too. */
public data class WaitingDevice(
    public val deviceId: ULong,
    public val name: String,
    public val publicKey: String,
    public val signingKey: String,
    public val code: String,
)

/**
 * Each function returns the state that it leads to. They throw as those of [KeyLog], and then nothing is signed, or as the
 * server refuses `PUT user/device-list`.
 */
internal class OwnDeviceList(
    private val server: Server,
    private val session: Session,
    private val keyLog: KeyLog,
    private val device: RegisteredDevice,
) {
    private val turn = Mutex()

    /** Does what needs no question. Call it at each start, and when the user's devices or list have changed. */
    suspend fun load(): OwnListState = change { own ->
        val list = own.list
        val present = own.user.named.devices.map { it.deviceId }
        if (list == null) return@change if (present.all { it == "${device.deviceId}" }) listOf(self) else null
        val left = list.devices.filter { "${it.deviceId}" in present }
        left.takeIf { list.devices.has(device.deviceId) && it.size < list.devices.size }
    }

    /** Puts a device on the list, with the keys of its code: the user has compared it. */
    suspend fun approve(waiting: WaitingDevice): OwnListState = change { own ->
        val devices = own.list?.devices.orEmpty()
        if (!devices.has(device.deviceId) || devices.has(waiting.deviceId)) null
        else devices + listedDevice(waiting.deviceId, waiting.publicKey, waiting.signingKey)
    }

    /**
     * Makes a list of this device alone, which no other one has signed: contacts hear of it. Throws `STEP_UP_REQUIRED` unless the
     * user has proven lately who they are.
     */
    suspend fun startOver(): OwnListState = change(isReset = true) { own ->
        val list = own.list
        val isAlone = list?.seq == 0L && list.devices.size == 1 && list.devices.has(device.deviceId)
        if (isAlone) null else listOf(self)
    }

    private val self get() = listedDevice(device.deviceId, device.keys.publicKey, device.keys.signingKey)

    /**
     * Signs lists until [next] has nothing to change. It is asked again with the newest list when another device has been
     * faster. Changes take turns.
     */
    private suspend fun change(isReset: Boolean = false, next: (OwnUser) -> List<ListedDevice>?): OwnListState =
        turn.withLock {
            var left = TRIES
            var own = keyLog.ownUser()
            var devices = next(own)
            while (devices != null) {
                try {
                    put(own, devices, isReset)
                } catch (error: CallsignException) {
                    if (left-- <= 1 || error.code != "DEVICE_LIST_CONFLICT") throw error
                }
                own = keyLog.ownUser()
                devices = next(own)
            }
            stateOf(own)
        }

    private suspend fun put(own: OwnUser, devices: List<ListedDevice>, isReset: Boolean) {
        val list = own.list
        val previous = if (isReset) null else own.user.named.deviceList
        // A list is younger than the one before, whatever the clocks say.
        val createdAtMs = maxOf(server.serverTimeMs(), (list?.createdAtMs ?: 0) + 1)
        val signer = ListSigner(device.userId, device.deviceId, device.keys)
        val body = bodyOf(mapOf("list" to signedList(signer, devices, createdAtMs, previous)))
        val headers = if (list == null) emptyMap() else mapOf("if-match" to "\"${list.seq}\"")
        session.request("PUT", "user/device-list", body, headers)
    }

    private suspend fun stateOf(own: OwnUser): OwnListState {
        val list = own.list ?: return OwnListState.None
        if (!list.devices.has(device.deviceId))
            return OwnListState.Waiting(codeOf(device.keys.publicKey, device.keys.signingKey))
        val left = own.user.named.devices.filter { named -> list.devices.none { "${it.deviceId}" == named.deviceId } }
        if (left.isEmpty()) return OwnListState.Listed(emptyList())
        val names = session.ask("GET", "devices").members("items").associate { it.text("deviceId") to it.text("name") }
        return OwnListState.Listed(
            left.mapNotNull { named ->
                // Without a signing key it can't be on a list.
                val signingKey = own.user.signingKeys[named.deviceId] ?: return@mapNotNull null
                val code = codeOf(named.publicKey, signingKey)
                val name = names[named.deviceId].orEmpty()
                WaitingDevice(named.deviceId.toULong(), name, named.publicKey, signingKey, code)
            },
        )
    }

    private companion object {
        const val TRIES = 4
    }
}

private fun List<ListedDevice>.has(deviceId: ULong) = any { it.deviceId == deviceId }

private fun codeOf(publicKey: String, signingKey: String) = spokenCode("callsign device v1\n$publicKey\n$signingKey")
