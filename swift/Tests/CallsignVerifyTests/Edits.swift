// The edits of a corpus, as `test/support/verdict-edits.ts` defines them.

import CallsignVerify
import TestSupport

func edited(_ value: JSONValue, _ edits: [JSONValue]) throws -> JSONValue {
    try edits.reduce(value) { now, edit in
        try known(changedAt(now, edit.list("at")[...]) { try changed($0, edit) }, "the whole value")
    }
}

/// Replaces the value at the path; nil takes it out.
private func changedAt(
    _ value: JSONValue?,
    _ path: ArraySlice<JSONValue>,
    _ change: (JSONValue?) throws -> JSONValue?
) throws -> JSONValue? {
    guard let step = path.first else { return try change(value) }
    let rest = path.dropFirst()
    if var list = value?.array {
        let at = try known(step.int, "an index")
        let changed = try changedAt(at < list.count ? list[at] : nil, rest, change)
        if at < list.count { list.remove(at: at) }
        if let changed { list.insert(changed, at: min(at, list.count)) }
        return .array(list)
    }
    var members = try known(value?.object, "an object")
    let name = try known(step.string, "a name")
    members[name] = try changedAt(members[name], rest, change)
    return .object(members)
}

/// Positions count the units of UTF-16, as in JavaScript.
private func changed(_ value: JSONValue?, _ edit: JSONValue) throws -> JSONValue? {
    if edit["unset"] != nil { return nil }
    if let set = edit["set"] { return set }
    let cut = edit.list("cut")
    let text = Array(try known(value?.string, "a text").utf16)
    let start = min(try known(cut.first?.int, "a start"), text.count)
    let end = min(start + (try known(cut[1].int, "a length")), text.count)
    let inserted = try known(cut[2].string, "a text")
    return .string(textOf(text[..<start] + Array(inserted.utf16) + text[end...]))
}

/// Half a surrogate pair becomes a control character, as in the answers of a log.
private func textOf(_ units: ArraySlice<UInt16>) -> String {
    var text = String.UnicodeScalarView()
    var decoder = UTF16()
    var iterator = units.makeIterator()
    while true {
        switch decoder.decode(&iterator) {
        case .scalarValue(let scalar): text.append(scalar)
        case .error: text.append("\0")
        case .emptyInput: return String(text)
        }
    }
}
