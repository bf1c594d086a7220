package org.example.calls

import android.net.Uri
import android.telecom.Connection
import android.telecom.ConnectionRequest
import android.telecom.ConnectionService
import android.telecom.DisconnectCause
import android.telecom.PhoneAccountHandle
import android.telecom.TelecomManager
import callsign.app.DeclineReason

/** Telecom asks for the connection of each call, and refuses one beside a call that can't be held. */
class CallConnections : ConnectionService() {
    override fun onCreateIncomingConnection(account: PhoneAccountHandle?, request: ConnectionRequest): Connection =
        connectionFor(request, isIncoming = true)

    override fun onCreateOutgoingConnection(account: PhoneAccountHandle?, request: ConnectionRequest): Connection =
        connectionFor(request, isIncoming = false)

    override fun onCreateIncomingConnectionFailed(account: PhoneAccountHandle?, request: ConnectionRequest) {
        callIdOf(request)?.let { app.phone.hangUp(it, DeclineReason.BUSY) }
    }

    override fun onCreateOutgoingConnectionFailed(account: PhoneAccountHandle?, request: ConnectionRequest) {
        callIdOf(request)?.let { app.phone.hangUp(it) }
    }

    private fun connectionFor(request: ConnectionRequest, isIncoming: Boolean): Connection =
        callIdOf(request)?.let { app.phone.connectionFor(it, isIncoming) }
            ?: Connection.createFailedConnection(DisconnectCause(DisconnectCause.CANCELED))

    private fun callIdOf(request: ConnectionRequest) = request.extras?.getString(Phone.CALL_ID)
}

class CallConnection(private val app: CallsApp, private val callId: String, name: String) : Connection() {
    init {
        connectionProperties = PROPERTY_SELF_MANAGED
        audioModeIsVoip = true
        setAddress(Uri.fromParts("callsign", callId, null), TelecomManager.PRESENTATION_ALLOWED)
        setCallerDisplayName(name, TelecomManager.PRESENTATION_ALLOWED)
    }

    override fun onShowIncomingCallUi() = app.phone.showRinging(callId)

    /** By a headset, a watch or a car. */
    override fun onAnswer() = app.phone.answer(callId)

    override fun onReject() = app.phone.hangUp(callId)

    override fun onDisconnect() = app.phone.hangUp(callId)

    fun close(cause: Int) {
        setDisconnected(DisconnectCause(cause))
        destroy()
    }
}
