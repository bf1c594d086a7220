import CallsignApp
import Foundation

/// The app's own words, by their names in `Words.strings`. Those of pushes and of CallKit come from the package
/// (`Localizable.strings`).
enum Word: String, CaseIterable {
    case signIn = "sign_in"
    case signInByPasskey = "sign_in_by_passkey"
    case emailAddress = "email_address"
    case nameFirstTime = "name_first_time"
    case codeSentTo = "code_sent_to"
    case approveSignIn = "approve_sign_in"
    case approveDevice = "approve_device"
    case contacts, call, accept, find, refresh, answer
    case personsLink = "persons_link"
    case myLink = "my_link"
    case addPasskey = "add_passkey"
    case askForContact = "ask_for_contact"
    case user
    case answerSignIn = "answer_sign_in"
    case signInAsked = "sign_in_asked"
    case newDevice = "new_device"
    case approveOnlyIfSame = "approve_only_if_same"
    case approve, refuse, remove, later, cancel, ok
    case proveYourself = "prove_yourself"
    case sendCode = "send_code"
    case passkey
    case answerAnyway = "answer_anyway"
    case keysNew = "keys_new"
    case keysNewWhy = "keys_new_why"
    case compareCode = "compare_code"
    case goOn = "go_on"
    case notNow = "not_now"
    case keysChanged = "keys_changed"
    case stranger
    case ringing, connecting
    case compareDigits = "compare_digits"
    case waitingForKey = "waiting_for_key"
    case callEnded = "call_ended"
    case hangUp = "hang_up"
    case otherCall = "other_call"
    case noMicrophone = "no_microphone"

    var text: String { Bundle.main.localizedString(forKey: rawValue, value: nil, table: "Words") }

    /// With what stands there for `%@`.
    func text(_ argument: String) -> String { text.replacingOccurrences(of: "%@", with: argument) }
}

/// What the call screen says of a call's state.
func sentenceOf(_ state: CallState) -> String {
    switch state {
    case .ringing: Word.ringing.text
    case .joining, .rejoining: Word.connecting.text
    case .active: Word.compareDigits.text
    case .keyless: Word.waitingForKey.text
    case .ended: Word.callEnded.text
    }
}
