import CallsignVerify
import Foundation

// What Apple's systems hand to an app: the dictionary of a push, and the words that stand for it.

/// The members of a push as texts, from PushKit's `dictionaryPayload` or a notification's `userInfo`. Where they are sealed,
/// `sealed` is among them, which `Callsign` opens.
public func pushMembers(_ payload: [AnyHashable: Any]) -> [String: String] {
    var members: [String: String] = [:]
    for (name, value) in payload {
        guard let name = name as? String, let text = textOf(value) else { continue }
        members[name] = text
    }
    return members
}

/// Nil for what is no text, number or truth value, such as `aps`.
private func textOf(_ value: Any) -> String? {
    if let text = value as? String { return text }
    if type(of: value) == Bool.self, let flag = value as? Bool { return "\(flag)" }
    guard let number = value as? NSNumber else { return nil }
    // Truth values are numbers too, and each number would pass for one.
    if String(cString: number.objCType) == "c" { return number.boolValue ? "true" : "false" }
    return number.stringValue
}

/// A text for the user: as it is, or by its name in `Localizable.strings`, with what stands there for `%@`.
public enum PushWords: Sendable, Equatable {
    case plain(String)
    case named(String, argument: String? = nil)

    /// In the phone's language: the app's own words, else those of this package.
    public func text(in bundle: Bundle = .main) -> String {
        switch self {
        case .plain(let text): return text
        case .named(let name, let argument):
            let texts = [bundle, .module].lazy.map { $0.localizedString(forKey: name, value: name, table: nil) }
            let found = texts.first { $0 != name }
            return (found ?? name).replacingOccurrences(of: "%@", with: argument ?? "")
        }
    }
}

/// A person's name as it is to be shown: a stranger may have any name, that of a contact too.
public func shownName(_ name: String, isContact: Bool) -> PushWords {
    isContact ? .plain(name) : .named("callsign_stranger", argument: name)
}

/// The words of a push that the system does not show itself, as the server fills them: for a notification service extension that
/// opens sealed pushes. Nil for a type that this package has no words for.
public func wordsOf(_ members: [String: String]) -> PushWords? {
    let type = members["type"] ?? ""
    let client = [members["userAgent"], members["network"]].lazy.compactMap { $0 }.first { !$0.isEmpty }
    switch type {
    case "call_invitation", "missed_call":
        let words = members["isContact"] == "true" ? type : "\(type)_stranger"
        return .named(words, argument: members["callerName"] ?? "")
    case "newFriendRequested", "acceptFriendRequested": return .named(type, argument: members["displayName"] ?? "")
    case "device_added", "device_list_reset", "device_push_lost": return .named(type, argument: members["name"] ?? "")
    case "session_started", "sign_in_waiting":
        return client.map { .named(type, argument: $0) } ?? .named("\(type)_unknown")
    case "session_ending", "session_revoked", "login_method_lost": return .named(type)
    default: return nil
    }
}
