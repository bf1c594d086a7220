package org.example.calls

import android.Manifest
import android.app.Activity
import android.app.AlertDialog
import android.content.Intent
import android.content.pm.PackageManager
import android.os.Build
import android.os.Bundle
import android.view.View
import android.widget.Button
import android.widget.EditText
import android.widget.LinearLayout
import android.widget.TextView
import callsign.app.CallsignException
import callsign.app.CodeQuestion
import callsign.app.Opened
import callsign.app.OwnListState
import callsign.app.WaitingSignIn
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.MainScope
import kotlinx.coroutines.cancel
import kotlinx.coroutines.flow.filterIsInstance
import kotlinx.coroutines.flow.filterNotNull
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.launch

/** Sign-in, contacts with a button to call each, and what waits for the user's approval. */
class MainActivity : Activity() {
    private val scope = MainScope()
    private lateinit var page: LinearLayout
    private lateinit var notice: TextView

    override fun onCreate(state: Bundle?) {
        super.onCreate(state)
        page = LinearLayout(this).apply {
            orientation = LinearLayout.VERTICAL
            setPadding(48, 96, 48, 48)
        }
        notice = TextView(this)
        setContentView(page)
        askForPermissions()
        scope.launch { app.me.proofNeeded.filterNotNull().collect { askForProof(it) } }
        attempt { if (app.me.resume() == null) showBeginning() else showContacts() }
    }

    override fun onNewIntent(intent: Intent) {
        super.onNewIntent(intent)
        setIntent(intent)
        attempt { if (app.me.user.value != null) showContacts() }
    }

    override fun onStart() {
        super.onStart()
        app.screen = this
    }

    override fun onStop() {
        if (app.screen == this) app.screen = null
        super.onStop()
    }

    override fun onDestroy() {
        scope.cancel()
        super.onDestroy()
    }

    private suspend fun showBeginning() {
        val waiting = app.me.waitingSignIn()
        if (waiting == null) showSignIn() else showWaiting(waiting)
    }

    /** Before the first call: over the lock screen Android asks for nothing. */
    private fun askForPermissions() {
        val wanted = mutableListOf(Manifest.permission.RECORD_AUDIO)
        if (Build.VERSION.SDK_INT >= Build.VERSION_CODES.TIRAMISU) wanted += Manifest.permission.POST_NOTIFICATIONS
        val missing = wanted.filter { checkSelfPermission(it) != PackageManager.PERMISSION_GRANTED }
        if (missing.isNotEmpty()) requestPermissions(missing.toTypedArray(), 1)
    }

    private fun showSignIn() {
        val address = EditText(this).apply { hint = "Email address" }
        val name = EditText(this).apply { hint = "Name, the first time" }
        val signIn = button("Sign in") {
            try {
                app.me.signIn("${address.text}".trim(), "${name.text}".trim().ifEmpty { null }, confirm = ::askForCode)
            } catch (error: CallsignException) {
                if (error.code != "SIGN_IN_WAITING") throw error
                return@button showBeginning()
            }
            app.sendToken()
            showContacts()
        }
        val passkey = button("Sign in by passkey") {
            app.me.signInByPasskey()
            app.sendToken()
            showContacts()
        }
        show(address, name, signIn, passkey)
    }

    /** Until another device of the user answers, or for three days. */
    private suspend fun showWaiting(waiting: WaitingSignIn) {
        show(text("Approve this sign-in on your other device. It shows the same code:\n\n${waiting.signInCode}"))
        try {
            app.me.finishSignIn()
        } catch (error: CallsignException) {
            showSignIn()
            throw error
        }
        app.sendToken()
        showContacts()
    }

    private suspend fun askForCode(question: CodeQuestion): String {
        val answer = CompletableDeferred<String>()
        val code = EditText(this)
        AlertDialog.Builder(this)
            .setTitle(question.error?.sentence ?: "The code sent to ${question.sent.sentTo}")
            .setView(code)
            .setPositiveButton("OK") { _, _ -> answer.complete("${code.text}") }
            .setOnCancelListener { answer.cancel() }
            .show()
        return answer.await()
    }

    private suspend fun showContacts() {
        try {
            val link = intent.data
            intent.data = null
            if (link == null) showAll() else showFound("$link")
        } catch (error: CallsignException) {
            if (error.code != "DEVICE_NOT_LISTED") throw error
            val code = app.me.devices.listState.filterIsInstance<OwnListState.Waiting>().first().code
            show(text("Approve this device on your other one. It shows the same code:\n\n$code"), refresh())
        }
    }

    private suspend fun showAll() {
        val contacts = app.me.contacts
        val link = EditText(this).apply { hint = "A person's link" }
        val find = button("Find") { showFound("${link.text}".trim()) }
        val mine = button("My link") { link.setText(contacts.shareLink()) }
        val requests = contacts.requests().items.map { request ->
            button("Accept ${request.person.displayName}") {
                contacts.accept(request.person.userId)
                showContacts()
            }
        }
        val calls = contacts.list().items.map { (person, _) ->
            button("Call ${person.name}") { app.phone.place(app.me.call(person.userId), person.name) }
        }
        val signIns = app.me.sessions.waiting().map { button("Answer a sign-in") { askAboutSignIn(it) } }
        val listState = app.me.devices.listState.value as? OwnListState.Listed
        val devices = listState?.waiting.orEmpty().map { button("Approve ${it.name}") { askAboutDevice(it) } }
        val passkey = button("Add a passkey") { app.me.addPasskey(Build.MODEL) }
        val settings = app.phone.notifications.fullScreenSettings()?.let { settings ->
            button("Let calls show over the lock screen") { startActivity(settings) }
        }
        val asked = listOfNotNull(settings) + signIns + devices + requests
        show(*(asked + calls).toTypedArray(), link, find, mine, passkey, refresh())
    }

    /** Says whose a link is, before that person hears of anything. A link that opened the app comes here, too. */
    private suspend fun showFound(scanned: String) {
        val found = app.me.contacts.open(scanned)
        val ask = button("Ask for contact") {
            found.request()
            showContacts()
        }
        val whose = when (found) {
            is Opened.Link -> listOfNotNull(found.displayName, found.relation).joinToString("\n")
            is Opened.User -> "User ${found.userId}"
        }
        show(text(whose), ask, button("Not now") { showContacts() })
    }

    private fun refresh() = button("Refresh") { showContacts() }

    private fun text(sentence: String) = TextView(this).apply { text = sentence }

    private fun button(label: String, act: suspend () -> Unit) = Button(this).apply {
        text = label
        setOnClickListener { attempt(act) }
    }

    private fun attempt(act: suspend () -> Unit) {
        notice.text = ""
        app.start({ notice.text = it }) { askingAboutKeys(act) }
    }

    private fun show(vararg views: View) {
        page.removeAllViews()
        for (view in listOf(notice, *views)) page.addView(view)
    }
}
