package callsign.app.calls

import callsign.app.objects
import callsign.app.readVectors
import callsign.app.text
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.jsonObject
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test

/** A ring by a push whose priority Firebase has lowered: the server hears of it, also when the phone was not connected. */
class LoweredPushTest {
    private val push = readVectors("push").objects("cases").first { it.text("name")?.startsWith("a call rings") == true }
        .getValue("members").jsonObject.mapValues { (_, text) -> JsonObject(mapOf("it" to text)).text("it").orEmpty() }

    private fun rungBy(wasLowered: Boolean): Device {
        val invitation = checkNotNull(invitationIn(push, wasLowered))
        val (device, acts) = decide(Device(ME, DEVICE), Input.Invited(invitation), 0)
        assertEquals(listOf(bodyWhen(wasLowered)), bodiesIn(acts))
        return device
    }

    private fun bodyWhen(wasLowered: Boolean) = Json.parseToJsonElement(if (wasLowered) """{"wasLowered":true}""" else "{}")

    private fun bodiesIn(acts: List<Act>) = acts.filterIsInstance<Act.Send>().map { it.body }

    @Test
    fun `it is said with the first message, and with the one after connecting`() {
        for (wasLowered in listOf(true, false)) {
            val (connected, asks) = decide(rungBy(wasLowered), Input.Connected(1, 1, Kept()), 1)
            val pending = asks.filterIsInstance<Act.Request>().single()
            val body = Json.parseToJsonElement("""{"items":[$record]}""").jsonObject
            val (_, acts) = decide(connected, Input.Done(pending.act, body), 2)
            assertEquals(listOf(bodyWhen(wasLowered)), bodiesIn(acts))
        }
    }

    private val record = run {
        val people = """{"userId":"7","displayName":"Ann","state":"joined","invitedBy":"7","invitedAt":"1970-01-01T00:00:00.000Z"},
            {"userId":"$ME","displayName":"Bob","state":"invited","invitedBy":"7","invitedAt":"1970-01-01T00:00:00.000Z"}"""
        """{"callId":"${push["callId"]}","version":1,"status":"ringing","isVideo":true,"isOnGoing":false,"initiatorId":"7",
            "hostUserId":"7","keyEpoch":1,"keyRotationIn":600,"ringTimeoutIn":60,"participants":[$people],"media":{"kind":"client"},
            "encryptedAESKey":"c2VhbGVk"}"""
    }

    private companion object {
        const val ME: ULong = 1u
        const val DEVICE: ULong = 4294967297u
    }
}
