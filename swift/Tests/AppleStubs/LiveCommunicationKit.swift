@_exported import Foundation

public struct Handle: Hashable, Sendable {
    public enum Kind: Sendable { case generic, phoneNumber, emailAddress }
    public init(type: Kind, value: String, displayName: String? = nil) { fatalError() }
    public var type: Kind { fatalError() }
    public var value: String { fatalError() }
    public var displayName: String { fatalError() }
}

public final class Conversation: Sendable {
    public struct Capabilities: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
        public static var pausing: Self { fatalError() }
        public static var merging: Self { fatalError() }
        public static var unmerging: Self { fatalError() }
        public static var playingTones: Self { fatalError() }
        public static var video: Self { fatalError() }
    }

    public struct Update: Sendable {
        public init(
            localMember: Handle? = nil, members: Set<Handle>? = nil, activeRemoteMembers: Set<Handle>? = nil,
            capabilities: Capabilities? = nil) { fatalError() }
    }

    public enum EndedReason: Sendable { case failed, remoteEnded, unanswered, joinedElsewhere, declinedElsewhere }

    public enum Event: Sendable {
        case conversationUpdated(Update)
        case conversationStartedConnecting(Date)
        case conversationConnected(Date)
        case conversationEnded(Date, EndedReason)
    }

    public var uuid: UUID { fatalError() }
}

public class ConversationAction: @unchecked Sendable {
    public var uuid: UUID { fatalError() }
    public var conversationUUID: UUID { fatalError() }
    public func fulfill(dateStarted: Date) { fatalError() }
    public func fail() { fatalError() }
}

public protocol ConversationManagerDelegate: AnyObject {
    func conversationManager(_ manager: ConversationManager, conversationChanged conversation: Conversation)
    func conversationManagerDidBegin(_ manager: ConversationManager)
    func conversationManagerDidReset(_ manager: ConversationManager)
    func conversationManager(_ manager: ConversationManager, perform action: ConversationAction)
}

public final class ConversationManager: @unchecked Sendable {
    public struct Configuration: Sendable {
        public init(
            ringtoneName: String?, iconTemplateImageData: Data?, maximumConversationGroups: Int,
            maximumConversationsPerConversationGroup: Int, includesConversationInRecents: Bool, supportsVideo: Bool,
            supportedHandleTypes: Set<Handle.Kind>) { fatalError() }
    }

    public init(configuration: Configuration) { fatalError() }
    public weak var delegate: (any ConversationManagerDelegate)?
    public var conversations: [Conversation] { fatalError() }
    public func reportNewIncomingConversation(uuid: UUID, update: Conversation.Update) async throws { fatalError() }
    public func reportConversationEvent(_ event: Conversation.Event, for conversation: Conversation) { fatalError() }
}
