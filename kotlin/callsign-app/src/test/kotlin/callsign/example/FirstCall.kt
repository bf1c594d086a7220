/** Signs in at a development server, becomes a contact of a person, calls them, and is called back. */
package callsign.example

import callsign.app.CallState
import callsign.app.Callsign
import callsign.app.CallsignEvent
import callsign.app.MemoryAppStorage
import callsign.app.developmentPins
import callsign.app.sentCode
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.async
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.flow.first

suspend fun main(args: Array<String>) = coroutineScope {
    val server = args[0]
    val peer = args[1].toULong()
    val pins = developmentPins(server) // an app has them built in
    val me = Callsign(server, pins, MemoryAppStorage())
    val address = "kim@example.org"
    me.signIn(address, displayName = "Kim") { sentCode(server, address) }
    val added = async(start = CoroutineStart.UNDISPATCHED) {
        me.events.first { it is CallsignEvent.Message && it.type == "contact_added" }
    }
    me.contacts.request(peer)
    added.await()

    val call = me.call(peer) // sealed for those of their devices that the log proves
    println("called: ${call.fingerprint}")
    call.state.first { it == CallState.ENDED }

    val back = me.ringing.first()
    back.answer() // once the caller's device and the key are verified
    println("called back: ${back.fingerprint}, verified: ${back.isVerified}")
    back.end()
    me.close()
}
