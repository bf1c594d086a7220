/** The user's devices, and the signed list that contacts check them against. */
package callsign.app

import callsign.verify.OwnKeysReport
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asStateFlow
import kotlinx.serialization.json.JsonObject

/** A device of the user. [current]: it is this one. */
public data class Device(
    public val deviceId: ULong,
    public val name: String,
    public val platform: String,
    public val current: Boolean,
)

public class Devices internal constructor(
    private val session: Session,
    private val keyLog: KeyLog,
    private val ownList: OwnDeviceList,
    private val operations: Operations,
) {
    private val states = MutableStateFlow<OwnListState?>(null)

    /** Where this device stands; null until that was read. */
    public val listState: StateFlow<OwnListState?> = states.asStateFlow()

    public suspend fun list(): List<Device> =
        session.ask("GET", "devices").members("items").map { deviceOf(it, it.flag("current")) }

    /** Whether the log holds this device's own key, and no other in its name. It is asked at each start; ask once a day, too. */
    public suspend fun checkKey(): OwnKeysReport = operations.run { keyLog.checkOwn() }

    /** Signs the device out, for good. */
    public suspend fun remove(deviceId: ULong) {
        session.request("DELETE", "devices/$deviceId")
    }

    /** The token that Firebase Cloud Messaging needs to wake this device. An empty one removes it. */
    public suspend fun putFcmToken(token: String) {
        session.request("PUT", "devices/current/push", bodyOf(mapOf("fcmToken" to token)))
    }

    /** Lets contacts encrypt for another device of the user, who has compared the code on both screens. */
    public suspend fun approve(device: WaitingDevice): Unit = operations.run { take(ownList.approve(device)) }

    /**
     * Makes this device the only one that contacts encrypt for, since the rest is lost: they hear of it. Throws
     * `STEP_UP_REQUIRED` unless the user has proven lately who they are.
     */
    public suspend fun startOver(): Unit = operations.run { take(ownList.startOver()) }

    /** Reads the list, and does what needs no question: it happens after each connection and change. */
    public suspend fun load(): Unit = operations.run { take(ownList.load()) }

    private fun take(state: OwnListState) {
        states.value = state
    }
}

internal fun deviceOf(members: JsonObject, current: Boolean): Device =
    Device(members.needId("deviceId"), members.text("name").orEmpty(), members.text("platform").orEmpty(), current)
