package org.example.calls

import android.app.Activity
import android.app.AlertDialog
import callsign.app.SignInToAnswer
import callsign.app.WaitingDevice

/** A sign-in that waits: the person compares the code with the screen that they hold, or holds none and refuses. */
fun Activity.askAboutSignIn(signIn: SignInToAnswer) {
    val client = listOfNotNull(signIn.userAgent, signIn.network).joinToString(", ")
    askToCompare("Someone wants to sign in as you", client, signIn.signInCode, refuse = "Refuse") { isApproved ->
        app.me.sessions.answer(signIn.id, isApproved)
    }
}

/** A device that is signed in, and may do little until it is approved. */
fun Activity.askAboutDevice(device: WaitingDevice) {
    askToCompare("A new device", device.name, device.code, refuse = "Remove") { isApproved ->
        if (isApproved) app.me.devices.approve(device) else app.me.devices.remove(device.deviceId)
    }
}

private fun Activity.askToCompare(
    title: String,
    client: String,
    code: String,
    refuse: String,
    answer: suspend (isApproved: Boolean) -> Unit,
) {
    AlertDialog.Builder(this)
        .setTitle(title)
        .setMessage("$client\n\nApprove it only if you hold it and its screen shows this code:\n\n$code")
        .setPositiveButton("Approve") { _, _ -> app.start(app.phone::tell) { answer(true) } }
        .setNegativeButton(refuse) { _, _ -> app.start(app.phone::tell) { answer(false) } }
        .setNeutralButton("Later", null)
        .show()
}
