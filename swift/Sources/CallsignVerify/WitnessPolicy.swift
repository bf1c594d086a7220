// Policies (c2sp.org/tlog-policy): a text file that names a log and the witnesses whose cosignatures an app asks for. Comments
// stand on lines of their own, and no key stands there twice.

/// `name` is the policy's; cosignatures carry the name of `key`.
struct Witness: Sendable {
    let name: String
    let key: VerifierKey
}

/// `threshold` of the members have to agree.
struct WitnessGroup: Sendable {
    let name: String
    let threshold: Int
    let members: [QuorumMember]
}

/// A witness or a group, by the name that the policy gives it.
enum QuorumMember: Sendable {
    case witness(Witness)
    case group(WitnessGroup)

    var name: String {
        switch self {
        case .witness(let witness): witness.name
        case .group(let group): group.name
        }
    }
}

/// `quorum` is nil where the policy asks for none. `rebuilders` is the member of that name, if any: the witnesses that rebuild an
/// index before they cosign its checkpoint. The name is our own convention.
struct WitnessPolicy: Sendable {
    let logs: [VerifierKey]
    let witnesses: [Witness]
    let quorum: QuorumMember?
    let rebuilders: QuorumMember?
}

/// Reads a policy. Throws `malformed`, with the number of the line, for what the specification does not allow.
func parsePolicy(_ text: String) throws(LogError) -> WitnessPolicy {
    if text.utf16.count > policyLengthMax { throw .malformed("policy is too long") }
    var reader = PolicyReader()
    for (at, line) in linesOf(text.utf8).enumerated() {
        let words = line.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }.map(textOf)
        guard let keyword = words.first, keyword.utf8.first != UInt8(ascii: "#") else { continue }
        do {
            try reader.read(keyword, Array(words.dropFirst()))
        } catch {
            throw .malformed("policy, line \(at + 1): \(error.message)")
        }
    }
    return try reader.policy()
}

/// The newest time at which the quorum had cosigned, by the time of each witness's cosignature: as old as its member that counts
/// last. Nil without a quorum.
func quorumSeconds(_ quorum: QuorumMember, _ secondsOf: (Witness) -> Int?) -> Int? {
    switch quorum {
    case .witness(let witness): return secondsOf(witness)
    case .group(let group):
        let times = group.members.compactMap { quorumSeconds($0, secondsOf) }.sorted(by: >)
        return times.count < group.threshold ? nil : times[group.threshold - 1]
    }
}

private struct PolicyReader {
    private enum QuorumLine {
        case nobody
        case member(QuorumMember)
    }

    private var logs: [VerifierKey] = []
    private var witnesses: [Witness] = []

    /// By the octets of their names, which Swift would else take for the same in different spellings.
    private var members: [[UInt8]: QuorumMember] = [:]
    private var taken: Set<[UInt8]> = []
    private var keys: Set<[UInt8]> = []
    private var quorumLine: QuorumLine?

    func policy() throws(LogError) -> WitnessPolicy {
        let quorum: QuorumMember? =
            switch quorumLine {
            case nil: throw .malformed("policy has no quorum line")
            case .nobody: nil
            case .member(let member): member
            }
        return WitnessPolicy(logs: logs, witnesses: witnesses, quorum: quorum, rebuilders: members[Array(rebuilders.utf8)])
    }

    mutating func read(_ keyword: String, _ words: [String]) throws(LogError) {
        switch keyword {
        case "log": try readLog(words)
        case "witness": try readWitness(words)
        case "group": try readGroup(words)
        case "quorum": try readQuorum(words)
        default: throw .malformed("starts with none of log, witness, group and quorum")
        }
    }

    private mutating func readLog(_ words: [String]) throws(LogError) {
        guard (1...2).contains(words.count) else { throw .malformed("a log is `log VKEY [URL]`") }
        logs.append(try once(parseVerifierKey(words[0])))
    }

    private mutating func readWitness(_ words: [String]) throws(LogError) {
        guard (2...3).contains(words.count) else { throw .malformed("a witness is `witness NAME VKEY [URL]`") }
        let witness = Witness(name: words[0], key: try once(parseWitnessKey(words[1])))
        try define(.witness(witness))
        witnesses.append(witness)
    }

    private mutating func readGroup(_ words: [String]) throws(LogError) {
        guard words.count >= 3 else { throw .malformed("a group is `group NAME all|any|NUMBER MEMBER...`") }
        var found: [QuorumMember] = []
        for name in words[2...] {
            found.append(try known(name))
            guard taken.insert(Array(name.utf8)).inserted else { throw .malformed("\(name) is a member already") }
        }
        let threshold = try thresholdOf(words[1], found.count)
        try define(.group(WitnessGroup(name: words[0], threshold: threshold, members: found)))
    }

    private mutating func readQuorum(_ words: [String]) throws(LogError) {
        guard words.count == 1 else { throw .malformed("a quorum is `quorum NAME|none`") }
        if quorumLine != nil { throw .malformed("there is a quorum already") }
        quorumLine = words[0] == "none" ? .nobody : .member(try known(words[0]))
    }

    private mutating func define(_ member: QuorumMember) throws(LogError) {
        if reserved.contains(member.name) { throw .malformed("\(member.name) can not be a name") }
        let name = Array(member.name.utf8)
        if members[name] != nil { throw .malformed("\(member.name) is there already") }
        members[name] = member
    }

    private func known(_ name: String) throws(LogError) -> QuorumMember {
        guard let member = members[Array(name.utf8)] else { throw .malformed("no line before this one has \(name)") }
        return member
    }

    private mutating func once(_ key: VerifierKey) throws(LogError) -> VerifierKey {
        guard keys.insert(key.publicKey).inserted else { throw .malformed("the key is there already") }
        return key
    }
}

private func thresholdOf(_ text: String, _ members: Int) throws(LogError) -> Int {
    switch text {
    case "all": return members
    case "any": return 1
    default:
        let threshold = try parseDecimal(text)
        guard (1...members).contains(threshold) else { throw .malformed("\(text) of \(members) members can not agree") }
        return threshold
    }
}

private let rebuilders = "rebuilders"
private let reserved: Set<String> = ["all", "any", "none"]

/// Room for some hundred witnesses, in UTF-16 units.
private let policyLengthMax = 65_536
