package org.example.calls

import android.Manifest
import android.app.Activity
import android.app.AlertDialog
import android.content.pm.PackageManager
import android.os.Build
import android.os.Bundle
import android.view.View
import android.widget.Button
import android.widget.EditText
import android.widget.LinearLayout
import android.widget.TextView
import callsign.app.CodeQuestion
import kotlinx.coroutines.CompletableDeferred

/** Sign-in, contacts, and a button to call each. */
class MainActivity : Activity() {
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
        askForNotifications()
        attempt { if (app.me.resume() == null) showSignIn() else showContacts() }
    }

    private fun askForNotifications() {
        if (Build.VERSION.SDK_INT < Build.VERSION_CODES.TIRAMISU) return
        val permission = Manifest.permission.POST_NOTIFICATIONS
        if (checkSelfPermission(permission) != PackageManager.PERMISSION_GRANTED) requestPermissions(arrayOf(permission), 1)
    }

    private fun showSignIn() {
        val address = EditText(this).apply { hint = "Email address" }
        val name = EditText(this).apply { hint = "Name, the first time" }
        val signIn = button("Sign in") {
            app.me.signIn("${address.text}".trim(), "${name.text}".trim().ifEmpty { null }, confirm = ::askForCode)
            app.sendToken()
            showContacts()
        }
        show(address, name, signIn)
    }

    private suspend fun askForCode(question: CodeQuestion): String {
        val answer = CompletableDeferred<String>()
        val code = EditText(this)
        AlertDialog.Builder(this)
            .setTitle(question.error?.message ?: "The code sent to ${question.sent.sentTo}")
            .setView(code)
            .setPositiveButton("OK") { _, _ -> answer.complete("${code.text}") }
            .setOnCancelListener { answer.cancel() }
            .show()
        return answer.await()
    }

    private suspend fun showContacts() {
        val contacts = app.me.contacts
        val link = EditText(this).apply { hint = "A person's link" }
        val add = button("Ask for contact") {
            contacts.requestByLink("${link.text}".trim())
            link.setText("")
        }
        val mine = button("My link") { link.setText(contacts.shareLink()) }
        val requests = contacts.requests().items.map { request ->
            button("Accept ${request.person.displayName}") {
                contacts.accept(request.person.userId)
                showContacts()
            }
        }
        val calls = contacts.list().items.map { (person, _) ->
            button("Call ${person.displayName}") { app.phone.place(app.me.call(person.userId), person.displayName) }
        }
        show(*(requests + calls).toTypedArray(), link, add, mine, button("Refresh") { showContacts() })
    }

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
