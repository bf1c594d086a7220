// Tokens by which the user shows services of the operator who they are, each used again until a minute before its end.
import CallsignVerify

@CallsignActor final class UserTokens {
    private final class Kept {
        let askedAtMs: Int
        let reply: Task<[String: JSONValue], any Error>

        /// Endless while the server is being asked.
        var usableUntilMs = Int.max

        init(_ askedAtMs: Int, _ reply: Task<[String: JSONValue], any Error>) {
            self.askedAtMs = askedAtMs
            self.reply = reply
        }
    }

    private let nowMs: @Sendable () -> Int
    private let ask: @CallsignActor @Sendable (_ audience: String) async throws -> [String: JSONValue]

    /// By audience.
    private var kept: [String: Kept] = [:]

    init(
        nowMs: @escaping @Sendable () -> Int,
        ask: @escaping @CallsignActor @Sendable (_ audience: String) async throws -> [String: JSONValue]
    ) {
        self.nowMs = nowMs
        self.ask = ask
    }

    func token(for audience: String) async throws -> String {
        let nowMs = nowMs()
        // A clock that was set back can't say how old the token is.
        if let held = kept[audience], nowMs >= held.askedAtMs, nowMs < held.usableUntilMs {
            return try await held.reply.value.needText("token")
        }
        let ask = ask
        let asked = Kept(nowMs, Task { try await ask(audience) })
        kept[audience] = asked
        do {
            let reply = try await asked.reply.value
            // By the time of the question: how long the answer was on its way is not known.
            let expiresInS = min(max(try reply.needNumber("expiresIn"), 0), Self.expiresInSMax)
            asked.usableUntilMs = nowMs + expiresInS * 1_000 - Self.spareMs
            return try reply.needText("token")
        } catch {
            if kept[audience] === asked { kept[audience] = nil }
            throw error
        }
    }

    /// For clocks that differ, and requests that take their time.
    private static let spareMs = 60_000

    /// Far from where sums overflow.
    private static let expiresInSMax = 10_000_000_000
}
