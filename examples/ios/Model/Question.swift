#if canImport(Combine)
import Combine
#endif
import CallsignApp
import Foundation

/// A question over whatever is on the screen. `field` is what stands in an empty text field, where it has one.
struct Question: Identifiable {
    struct Choice: Identifiable {
        let id = UUID()
        let label: String
        var isRefusal = false

        /// Gets what is in the text field.
        let act: @MainActor (String) async throws -> Void
    }

    let id = UUID()
    let title: String
    var text = ""
    var field: String?
    var choices: [Choice]
}

/// Asks the person one thing at a time, and says what has failed.
@MainActor final class Asking: ObservableObject {
    @Published private(set) var question: Question?
    @Published var notice = ""
    let me: Callsign
    private var next: [Question] = []

    init(_ me: Callsign) { self.me = me }

    func ask(_ question: Question) {
        if self.question == nil { self.question = question } else { next.append(question) }
    }

    /// The alert is gone as soon as a button was pressed.
    func choose(_ choice: Question.Choice, _ text: String) {
        question = next.isEmpty ? nil : next.removeFirst()
        start { try await choice.act(text) }
    }

    /// Runs what may fail by itself. Where a contact's keys are new it asks the person, and runs it once more when they go on.
    func start(_ act: @escaping @MainActor () async throws -> Void) {
        notice = ""
        Task { await askingAboutKeys(act) }
    }

    func tell(_ error: any Error) {
        guard let error = error as? CallsignError else { return notice = "\(error)" }
        NSLog("calls: %@ %@", error.code, error.message)
        notice = error.sentence
    }
}
