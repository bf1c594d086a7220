@_exported import Foundation

@available(iOS 17.4, *)
public struct Handle: Hashable, Sendable {
    public enum Kind: Hashable, Sendable { case generic, phoneNumber, emailAddress }
    public init(type: Kind, value: String, displayName: String? = nil) { fatalError() }
}

@available(iOS 17.4, *)
public final class Conversation {
    public struct Capabilities: OptionSet, Sendable {
        public let rawValue: Int
        public init(rawValue: Int) { self.rawValue = rawValue }
        public static let video = Capabilities(rawValue: 1)
    }

    public struct Update {
        public init(
            localMember: Handle? = nil, members: Set<Handle>? = nil, activeRemoteMembers: Set<Handle>? = nil,
            capabilities: Capabilities? = nil
        ) { fatalError() }
    }

    public enum EndedReason: Sendable { case failed, remoteEnded, unanswered, joinedElsewhere, declinedElsewhere }
    public enum Event { case conversationEnded(Date, EndedReason) }
    public var uuid: UUID { fatalError() }
}

@available(iOS 17.4, *)
public final class ConversationManager {
    public var conversations: [Conversation] { fatalError() }
    public func reportNewIncomingConversation(uuid: UUID, update: Conversation.Update) async throws { fatalError() }
    public func reportConversationEvent(_ event: Conversation.Event, for conversation: Conversation) { fatalError() }
}
