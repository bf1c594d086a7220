import CallsignApp

// Questions about keys: those of a contact, and those in an invitation.

extension Asking {
    /// Runs `act`. Where a contact's keys are new it asks the person first, and runs it once more when they go on.
    func askingAboutKeys(_ act: @escaping @MainActor () async throws -> Void) async {
        do {
            try await act()
        } catch let error as CallsignError where error.code == CallsignError.LocalCode.keysReset {
            askAboutKeys(error, code: "", act)
        } catch {
            tell(error)
        }
    }

    /// Whether the call was answered. Asks before an old invitation is answered, one for a device that only the server calls the
    /// person's own, or one of a contact whose keys are new: then it is answered once they go on.
    func answer(_ call: Call, evenIfOld: Bool = false) async throws -> Bool {
        do {
            try await call.answer(evenIfOld: evenIfOld)
            return true
        } catch let error as CallsignError {
            let again: @MainActor () async throws -> Void
            switch error.code {
            case CallsignError.LocalCode.invitationOld:
                again = { _ = try await self.answer(call, evenIfOld: true) }
            case CallsignError.LocalCode.ownDeviceInSet:
                again = {
                    try await call.acceptDevice(error.text("name"))
                    _ = try await self.answer(call)
                }
            case CallsignError.LocalCode.keysReset:
                askAboutKeys(error, code: "") { _ = try await self.answer(call, evenIfOld: evenIfOld) }
                return false
            default: throw error
            }
            ask(goingOn(title: Word.answerAnyway.text, text: error.sentence, again))
            return false
        }
    }

    private func askAboutKeys(_ error: CallsignError, code: String, _ act: @escaping @MainActor () async throws -> Void) {
        guard let userId = UInt64(error.text("userId")) else { return tell(error) }
        var question = goingOn(title: Word.keysNew.text, text: Word.keysNewWhy.text + code) { [me] in
            try await me.contacts.acceptKeys(userId, listHash: error.text("listHash"))
            try await act()
        }
        let compare = Question.Choice(label: Word.compareCode.text) { [me] _ in
            let code = try await me.contacts.comparisonCode(userId)
            self.askAboutKeys(error, code: "\n\n\(code)", act)
        }
        question.choices.append(compare)
        ask(question)
    }

    private func goingOn(title: String, text: String, _ act: @escaping @MainActor () async throws -> Void) -> Question {
        let goOn = Question.Choice(label: Word.goOn.text) { _ in try await act() }
        let notNow = Question.Choice(label: Word.notNow.text, isRefusal: true) { _ in }
        return Question(title: title, text: text, choices: [goOn, notNow])
    }
}

extension CallsignError {
    fileprivate func text(_ member: String) -> String { members[member]?.string ?? "" }
}
