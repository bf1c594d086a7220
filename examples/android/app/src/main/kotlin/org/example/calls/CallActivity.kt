package org.example.calls

import android.Manifest
import android.app.Activity
import android.app.KeyguardManager
import android.content.Intent
import android.os.Build
import android.os.Bundle
import android.view.View
import android.view.WindowManager
import android.widget.Button
import android.widget.LinearLayout
import android.widget.TextView
import callsign.app.CallState
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.cancel
import kotlinx.coroutines.flow.combine
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.launch

/** The call screen, also over the lock screen: its person, state, and the fingerprint of its key. */
class CallActivity : Activity() {
    private var scope = CoroutineScope(Dispatchers.Main)
    private lateinit var text: TextView
    private lateinit var answer: Button
    private lateinit var hangUp: Button

    /** The call to answer once Android has asked about the microphone. */
    private var answering: String? = null

    override fun onCreate(state: Bundle?) {
        super.onCreate(state)
        if (Build.VERSION.SDK_INT < Build.VERSION_CODES.O_MR1) {
            @Suppress("DEPRECATION")
            window.addFlags(
                WindowManager.LayoutParams.FLAG_SHOW_WHEN_LOCKED or WindowManager.LayoutParams.FLAG_TURN_SCREEN_ON,
            )
        }
        text = TextView(this).apply { textSize = 24f }
        answer = Button(this).apply { setText("Answer") }
        hangUp = Button(this).apply { setText("Hang up") }
        setContentView(
            LinearLayout(this).apply {
                orientation = LinearLayout.VERTICAL
                setPadding(48, 96, 48, 48)
                for (view in listOf(text, answer, hangUp)) addView(view)
            },
        )
        show(intent)
    }

    override fun onNewIntent(intent: Intent) {
        super.onNewIntent(intent)
        show(intent)
    }

    override fun onDestroy() {
        scope.cancel()
        super.onDestroy()
    }

    private fun show(intent: Intent) {
        val callId = Screens.callIdOf(intent) ?: return finish()
        scope.cancel()
        scope = CoroutineScope(Dispatchers.Main + Job())
        answer.setOnClickListener { answer(callId) }
        hangUp.setOnClickListener {
            app.phone.hangUp(callId)
            finish()
        }
        if (intent.action == Screens.ANSWER) answer(callId)
        scope.launch { draw(callId) }
    }

    /** Without the microphone the person can still listen, so their answer to Android's question changes nothing here. */
    private fun answer(callId: String) {
        if (hasMicrophone) return app.phone.answer(callId) { answerAsking(it) }
        answering = callId
        // Android's question does not show over the lock screen.
        getSystemService(KeyguardManager::class.java).requestDismissKeyguard(this, null)
        requestPermissions(arrayOf(Manifest.permission.RECORD_AUDIO), 1)
    }

    override fun onRequestPermissionsResult(code: Int, permissions: Array<String>, results: IntArray) {
        super.onRequestPermissionsResult(code, permissions, results)
        val callId = answering ?: return
        answering = null
        app.phone.answer(callId) { answerAsking(it) }
    }

    private suspend fun draw(callId: String) {
        val call = app.phone.awaitCall(callId) ?: return finish()
        combine(call.state, call.key, call.participants) { state, _, _ -> state }.first { state ->
            answer.visibility = if (call.isIncoming && state == CallState.RINGING) View.VISIBLE else View.GONE
            val people = call.participants.value.joinToString { it.name }
            val stranger = "Not one of your contacts".takeIf { call.caller.isContact == false }
            val mute = "The others can't hear you: let the app use the microphone, in the phone's settings".takeIf { !hasMicrophone }
            text.text = listOfNotNull(people, stranger, sentenceOf(state), call.fingerprint, mute).joinToString("\n\n")
            state == CallState.ENDED
        }
        finish()
    }

    private fun sentenceOf(state: CallState) = when (state) {
        CallState.RINGING -> "Ringing"
        CallState.JOINING, CallState.REJOINING -> "Connecting"
        CallState.ACTIVE -> "Compare these digits with the other person:"
        CallState.KEYLESS -> "Waiting for a new key"
        CallState.ENDED -> "The call has ended"
    }
}
