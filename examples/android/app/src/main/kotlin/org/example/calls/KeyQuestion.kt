package org.example.calls

import android.app.Activity
import android.app.AlertDialog
import callsign.app.Call
import callsign.app.CallsignException
import callsign.app.CallsignException.LocalCode
import kotlinx.serialization.json.jsonPrimitive

/** Runs [act]. Where a contact's keys are new it asks the person first, and runs it once more when they go on. */
suspend fun Activity.askingAboutKeys(act: suspend () -> Unit) {
    try {
        act()
    } catch (error: CallsignException) {
        if (error.code != LocalCode.KEYS_RESET) throw error
        askAboutKeys(error, "", act)
    }
}

/** Asks also before an old invitation is answered, or one for a device that only the server calls the person's own. */
suspend fun Activity.answerAsking(call: Call, evenIfOld: Boolean = false): Unit = askingAboutKeys {
    try {
        call.answer(evenIfOld)
    } catch (error: CallsignException) {
        when (error.code) {
            LocalCode.INVITATION_OLD -> ask("Answer?", error.sentence) { answerAsking(call, evenIfOld = true) }
            LocalCode.OWN_DEVICE_IN_SET -> ask("Answer?", error.sentence) {
                call.acceptDevice(error.textOf("name"))
                answerAsking(call)
            }
            else -> throw error
        }
    }
}

private fun Activity.askAboutKeys(error: CallsignException, code: String, act: suspend () -> Unit) {
    val userId = error.textOf("userId").toULong()
    val question = "There is a new device, or somebody else is signed in under that name."
    val compare: suspend () -> Unit = { askAboutKeys(error, "\n\n${app.me.contacts.comparisonCode(userId)}", act) }
    ask("A contact’s keys are new", "$question Compare the code with them, or go on?$code", compare) {
        app.me.contacts.acceptKeys(userId, error.textOf("listHash"))
        askingAboutKeys(act)
    }
}

private fun Activity.ask(title: String, text: String, compare: (suspend () -> Unit)? = null, goOn: suspend () -> Unit) {
    val dialog = AlertDialog.Builder(this)
        .setTitle(title)
        .setMessage(text)
        .setPositiveButton("Go on") { _, _ -> app.start(app.phone::tell, goOn) }
        .setNegativeButton("Not now", null)
    if (compare != null) dialog.setNeutralButton("Compare a code") { _, _ -> app.start(app.phone::tell, compare) }
    dialog.show()
}

private fun CallsignException.textOf(member: String) = members.getValue(member).jsonPrimitive.content
