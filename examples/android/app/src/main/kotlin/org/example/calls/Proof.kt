package org.example.calls

import android.app.Activity
import android.app.AlertDialog
import android.widget.EditText
import callsign.app.ProofQuestion
import callsign.app.ProofWay

/** The server wants to know who holds the phone, before it does what the person has asked for. */
fun Activity.askForProof(proof: ProofQuestion, title: String = "Prove that it is you") {
    fun attempt(act: suspend () -> Unit) = app.start({ askForProof(proof, it) }, act)
    val code = EditText(this).apply { hint = proof.sentTo?.let { "Code sent to $it" } }
    val dialog = AlertDialog.Builder(this).setTitle(title).setOnCancelListener { proof.refuse() }
    if (proof.sentTo != null)
        dialog.setView(code).setPositiveButton("OK") { _, _ -> attempt { proof.confirm("${code.text}") } }
    if (ProofWay.CODE in proof.ways)
        dialog.setNegativeButton("Send a code") { _, _ ->
            attempt {
                proof.sendCode()
                askForProof(proof)
            }
        }
    if (ProofWay.PASSKEY in proof.ways) dialog.setNeutralButton("Passkey") { _, _ -> attempt { proof.byPasskey() } }
    dialog.show()
}
