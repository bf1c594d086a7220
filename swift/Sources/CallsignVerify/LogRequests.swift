// The log's HTTP operations as a client uses them. Answers are not verified here, only bounded in time and octets.

/// No network, a refusal of the server, or an answer of something that is not the log's server.
struct NoAnswer: Error {
    let message: String
    var status: Int?
    var code: String?

    init(_ message: String, status: Int? = nil, code: String? = nil) {
        self.message = message
        self.status = status
        self.code = code
    }

    var unanswered: Unanswered { Unanswered(message, status: status, code: code) }
}

/// Every operation throws `NoAnswer`, or `CancellationError` where the task was cancelled.
struct LogRequests: Sendable {
    private let prefix: String
    private let transport: any LogTransport
    private let timeoutMs: Int

    /// `url` is the log's prefix; a request with its answer may take `timeoutMs`.
    init(url: String, transport: any LogTransport, timeoutMs: Int) {
        prefix = withoutLastSlashes(url)
        self.transport = transport
        self.timeoutMs = timeoutMs
    }

    /// The JSON that answers a POST of `body`.
    func post(_ path: String, _ body: JSONValue) async throws -> JSONValue {
        let answer = try await request(path, body.text, octetsMax: answerOctetsMax)
        // Half a surrogate pair makes a note malformed, as a control character does.
        let json = JSONValue(octets: withoutMark(answer.body), half: "\0")
        if answer.status != 200 {
            throw NoAnswer("\(path) answers \(answer.status)", status: answer.status, code: json?["code"]?.string)
        }
        guard let json else { throw NoAnswer("\(path) answers something else than JSON", status: answer.status) }
        return json
    }

    /// The log's current signed note.
    func checkpoint() async throws -> String {
        let answer = try await request("checkpoint", nil, octetsMax: noteOctetsMax)
        if answer.status == 200 { return String(decoding: withoutMark(answer.body), as: UTF8.self) }
        throw NoAnswer("checkpoint answers \(answer.status)", status: answer.status)
    }

    /// The hashes of a tile. A log may drop a partial tile once it has the full one, which begins with it.
    func tile(_ tile: Tile) async throws -> [UInt8] {
        do {
            return try await hashes(tile)
        } catch let error as NoAnswer {
            if tile.width == tileWidth || error.status == nil { throw error }
            let full = Tile(level: tile.level, index: tile.index, width: tileWidth)
            return Array(try await hashes(full).prefix(tile.width * hashOctets))
        }
    }

    /// The entries of a bundle. A log may drop a partial one once it has the full one, which begins with it.
    func entries(_ bundle: EntryBundle) async throws -> [[UInt8]] {
        do {
            return try await entriesIn(bundle)
        } catch let error as NoAnswer {
            if bundle.width == tileWidth || error.status == nil { throw error }
            return Array(try await entriesIn(EntryBundle(index: bundle.index, width: tileWidth)).prefix(bundle.width))
        }
    }

    private func entriesIn(_ bundle: EntryBundle) async throws -> [[UInt8]] {
        let path = formatBundlePath(bundle)
        let answer = try await request(path, nil, octetsMax: bundle.width * entryOctetsMax)
        if answer.status != 200 { throw NoAnswer("\(path) answers \(answer.status)", status: answer.status) }
        let entries: [[UInt8]]
        do {
            entries = try parseBundle(answer.body)
        } catch {
            throw NoAnswer("\(path) is not of its form: \(error.message)")
        }
        if entries.count == bundle.width { return entries }
        throw NoAnswer("\(path) has \(entries.count) entries instead of \(bundle.width)", status: answer.status)
    }

    private func hashes(_ tile: Tile) async throws -> [UInt8] {
        let path = try formatTilePath(tile)
        let length = tile.width * hashOctets
        let answer = try await request(path, nil, octetsMax: length)
        if answer.status != 200 { throw NoAnswer("\(path) answers \(answer.status)", status: answer.status) }
        if answer.body.count == length { return answer.body }
        throw NoAnswer("\(path) has \(answer.body.count) octets instead of \(length)", status: answer.status)
    }

    private func request(_ path: String, _ body: String?, octetsMax: Int) async throws -> LogAnswer {
        let request = LogRequest(url: "\(prefix)/\(path)", body: body, answerOctetsMax: octetsMax)
        let answer: LogAnswer?
        do {
            answer = try await within(timeoutMs) { [transport] in try await transport.send(request) }
        } catch {
            try Task.checkCancellation()
            throw NoAnswer("\(path) cannot be fetched: \(error)")
        }
        guard let answer else { throw NoAnswer("\(path) was not answered in \(timeoutMs) ms") }
        if answer.body.count > octetsMax {
            throw NoAnswer("an answer has more than \(octetsMax) bytes", status: answer.status)
        }
        return answer
    }
}

/// Nil where it takes longer.
private func within<Value: Sendable>(
    _ timeoutMs: Int,
    _ act: @escaping @Sendable () async throws -> Value
) async throws -> Value? {
    try await withThrowingTaskGroup(of: Value?.self) { group in
        group.addTask { try await act() }
        group.addTask {
            try await Task.sleep(for: .milliseconds(timeoutMs))
            return nil
        }
        defer { group.cancelAll() }
        return try await group.next() ?? nil
    }
}

/// A prefix with and without a slash at its end is the same.
func withoutLastSlashes(_ url: String) -> String {
    var octets = Array(url.utf8)
    while octets.last == UInt8(ascii: "/") { octets.removeLast() }
    return String(decoding: octets, as: UTF8.self)
}

/// A byte order mark before a text is no part of it.
private func withoutMark(_ octets: [UInt8]) -> [UInt8] {
    octets.starts(with: [0xef, 0xbb, 0xbf]) ? Array(octets.dropFirst(3)) : octets
}

/// The longest key history, a thousand keys of 1,024 characters, has 2.3 MB in a log of a million entries.
private let answerOctetsMax = 4 * 1024 * 1024
private let noteOctetsMax = 1_000_000

/// In a bundle, with its length, of the longest key that a log of this kind takes: 1,024 characters.
private let entryOctetsMax = 2 + 88 + 1 + 1_024 + 1
