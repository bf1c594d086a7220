#if canImport(LiveCommunicationKit) && !os(macOS)
import Foundation
import LiveCommunicationKit

// What LiveCommunicationKit has to be told, in its own types: where an app may not use CallKit.

@available(iOS 17.4, *)
extension CallReport {
    /// One call at a time: nothing is held or joined.
    public func conversationUpdate() -> Conversation.Update {
        let person = Handle(type: .generic, value: handle, displayName: caller.text())
        return Conversation.Update(members: [person], activeRemoteMembers: [person], capabilities: isVideo ? [.video] : [])
    }

    /// Reports the call, and its end where it has ended. Start it before PushKit's handler returns, and call the handler's
    /// completion after it. Gives false where the call does not ring: it is over, or the system wants no more calls.
    public func report(to manager: ConversationManager) async -> Bool {
        do {
            try await manager.reportNewIncomingConversation(uuid: uuid, update: conversationUpdate())
        } catch {
            return false
        }
        guard let endsAs else { return true }
        if let conversation = manager.conversations.first(where: { $0.uuid == uuid }) {
            manager.reportConversationEvent(.conversationEnded(Date(), endsAs.liveCommunication), for: conversation)
        }
        return false
    }
}

@available(iOS 17.4, *)
extension SystemEnd {
    public var liveCommunication: Conversation.EndedReason {
        switch self {
        case .failed: .failed
        case .remoteEnded: .remoteEnded
        case .unanswered: .unanswered
        case .answeredElsewhere: .joinedElsewhere
        case .declinedElsewhere: .declinedElsewhere
        }
    }
}
#endif
