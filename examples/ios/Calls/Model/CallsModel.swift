#if canImport(Combine)
import Combine
#endif
import CallsignApp
import Foundation

/// What the app's main screen shows.
enum Page {
    case beginning
    case signIn

    /// Until another device of the user answers, or for three days.
    case waitingForSignIn(code: String)

    /// Until another device of the user approves this one.
    case waitingForApproval(code: String)
    case contacts(ContactsPage)

    /// Whose a link is: that person has heard of nothing yet.
    case found(Opened, whose: String)
}

struct ContactsPage {
    let contacts: [Contact]
    let requests: [ContactRequest]
    let signIns: [SignInToAnswer]
    let devices: [WaitingDevice]
}

/// The user, their contacts and their calls. A push starts it too, without any screen.
@MainActor final class CallsModel: ObservableObject {
    @Published private(set) var page = Page.beginning
    let me: Callsign
    let asking: Asking
    let phone: Phone
    let pushes: Pushes

    init(_ me: Callsign) {
        self.me = me
        asking = Asking(me)
        phone = Phone(me, asking)
        pushes = Pushes(me, phone, asking)
    }

    /// Once, as the app starts.
    func start() {
        Task {
            for await call in me.ringing { phone.ring(call) }
        }
        Task {
            for await proof in me.proofNeeded.values {
                if let proof { await asking.askForProof(proof) }
            }
        }
        Task {
            for await event in me.events { onEvent(event) }
        }
        attempt { [self] in
            if try await me.resume() == nil { return try await showBeginning() }
            pushes.send()
            try await showContacts()
        }
    }

    private func onEvent(_ event: CallsignEvent) {
        switch event {
        case .failed(let error): NSLog("calls: %@ %@", error.code, error.message)
        case .keysChanged: asking.notice = Word.keysChanged.text
        case .signedOut(let error):
            asking.tell(error)
            page = .signIn
        default: return
        }
    }

    private func showBeginning() async throws {
        guard let waiting = try await me.waitingSignIn() else { return page = .signIn }
        page = .waitingForSignIn(code: waiting.signInCode)
        do {
            _ = try await me.finishSignIn()
        } catch {
            page = .signIn
            throw error
        }
        try await welcome()
    }

    func signIn(address: String, name: String) {
        attempt { [self] in
            do {
                let displayName = name.isEmpty ? nil : name
                _ = try await me.signIn(address, displayName: displayName) { try await self.askForCode($0) }
            } catch let error as CallsignError where error.code == "SIGN_IN_WAITING" {
                return try await showBeginning()
            }
            try await welcome()
        }
    }

    func signInByPasskey() {
        attempt { [self] in
            _ = try await me.signInByPasskey()
            try await welcome()
        }
    }

    private func welcome() async throws {
        pushes.send()
        try await showContacts()
    }

    private func askForCode(_ question: CodeQuestion) async throws -> String {
        try await withCheckedThrowingContinuation { answer in
            let choices = [
                Question.Choice(label: Word.ok.text) { answer.resume(returning: $0) },
                Question.Choice(label: Word.cancel.text, isRefusal: true) { _ in answer.resume(throwing: CancellationError()) },
            ]
            let title = question.error?.sentence ?? Word.codeSentTo.text(question.sent.sentTo)
            asking.ask(Question(title: title, field: "", choices: choices))
        }
    }

    func showContacts() async throws {
        do {
            let contacts = try me.contacts
            let listed = try me.devices.listState.value
            let devices = if case .listed(let waiting) = listed { waiting } else { [WaitingDevice]() }
            page = .contacts(
                ContactsPage(
                    contacts: try await contacts.list().items,
                    requests: try await contacts.requests().items,
                    signIns: try await me.sessions.waiting(),
                    devices: devices
                ))
        } catch let error as CallsignError where error.code == "DEVICE_NOT_LISTED" {
            for await state in try me.devices.listState.values {
                guard case .waiting(let code) = state else { continue }
                return page = .waitingForApproval(code: code)
            }
        }
    }

    func refresh() {
        attempt { [self] in try await showContacts() }
    }

    func call(_ person: Person, isVideo: Bool = false) {
        attempt { [self] in try await phone.place(to: person.userId, name: person.name, isVideo: isVideo) }
    }

    /// From the phone's list of calls: `handle` is what the app gave CallKit.
    func call(handle: String, isVideo: Bool) {
        attempt { [self] in
            guard let userId = UInt64(handle), try await me.resume() != nil else { return }
            let person = try await me.contacts.list().items.first { $0.person.userId == userId }?.person
            try await phone.place(to: userId, name: person?.name ?? "", isVideo: isVideo)
        }
    }

    func accept(_ request: ContactRequest) {
        attempt { [self] in
            try await me.contacts.accept(request.person.userId)
            try await showContacts()
        }
    }

    /// Says whose a link is, before that person hears of anything. A link that opened the app comes here, too.
    func find(_ scanned: String) {
        attempt { [self] in
            let found = try await me.contacts.open(scanned)
            let whose =
                switch found {
                case .link(let displayName, let relation, _, _): [displayName, relation].compactMap { $0 }.joined(separator: "\n")
                case .user(let userId, _): "\(Word.user.text) \(userId)"
                }
            page = .found(found, whose: whose)
        }
    }

    func request(_ found: Opened) {
        attempt { [self] in
            _ = try await found.request()
            try await showContacts()
        }
    }

    func shareLink(_ show: @escaping @MainActor (String) -> Void) {
        attempt { [self] in show(try await me.contacts.shareLink()) }
    }

    func addPasskey(label: String) {
        attempt { [self] in _ = try await me.addPasskey(label: label) }
    }

    private func attempt(_ act: @escaping @MainActor () async throws -> Void) {
        asking.notice = ""
        asking.start(act)
    }
}
