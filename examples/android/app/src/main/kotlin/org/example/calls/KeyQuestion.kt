package org.example.calls

import android.app.Activity
import android.app.AlertDialog
import callsign.app.CallsignException
import kotlinx.serialization.json.jsonPrimitive

/** Runs [act]. Where a contact's keys are new it asks the person first, and runs it once more when they go on. */
suspend fun Activity.askingAboutKeys(act: suspend () -> Unit) {
    try {
        act()
    } catch (error: CallsignException) {
        if (error.code != CallsignException.LocalCode.KEYS_RESET) throw error
        ask(error, "", act)
    }
}

private fun Activity.ask(error: CallsignException, code: String, act: suspend () -> Unit) {
    val userId = error.members.getValue("userId").jsonPrimitive.content.toULong()
    val listHash = error.members.getValue("listHash").jsonPrimitive.content
    val question = "There is a new device, or somebody else is signed in under that name."
    AlertDialog.Builder(this)
        .setTitle("A contact’s keys are new")
        .setMessage("$question Compare the code with them, or go on?$code")
        .setPositiveButton("Go on") { _, _ ->
            app.start(app.phone::tell) {
                app.me.contacts.acceptKeys(userId, listHash)
                askingAboutKeys(act)
            }
        }
        .setNeutralButton("Compare a code") { _, _ ->
            app.start(app.phone::tell) { ask(error, "\n\n${app.me.contacts.comparisonCode(userId)}", act) }
        }
        .setNegativeButton("Not now", null)
        .show()
}
