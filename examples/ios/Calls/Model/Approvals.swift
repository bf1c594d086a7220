import CallsignApp

// What waits for the person's approval, and the proof that the server wants of them.

extension Asking {
    /// A sign-in that waits: the person compares the code with the screen that they hold, or holds none and refuses.
    func askAboutSignIn(_ signIn: SignInToAnswer) {
        let client = [signIn.userAgent, signIn.network].compactMap { $0 }.joined(separator: ", ")
        askToCompare(Word.signInAsked.text, client, signIn.signInCode, refuse: Word.refuse.text) { [me] isApproved in
            try await me.sessions.answer(signIn.id, approve: isApproved)
        }
    }

    /// A device that is signed in, and may do little until it is approved.
    func askAboutDevice(_ device: WaitingDevice) {
        askToCompare(Word.newDevice.text, device.name, device.code, refuse: Word.remove.text) { [me] isApproved in
            if isApproved {
                try await me.devices.approve(device)
            } else {
                try await me.devices.remove(device.deviceId)
            }
        }
    }

    /// The server wants to know who holds the phone, before it does what the person has asked for.
    func askForProof(_ proof: ProofQuestion, title: String = Word.proveYourself.text) async {
        func attempt(_ act: @escaping @MainActor () async throws -> Void) async {
            do {
                try await act()
            } catch {
                await askForProof(proof, title: (error as? CallsignError)?.sentence ?? "\(error)")
            }
        }
        let sentTo = await proof.sentTo
        var choices: [Question.Choice] = []
        if sentTo != nil {
            choices.append(Question.Choice(label: Word.ok.text) { code in await attempt { try await proof.confirm(code) } })
        }
        if proof.ways.contains(.code) {
            let send = Question.Choice(label: Word.sendCode.text) { _ in
                await attempt {
                    _ = try await proof.sendCode()
                    await self.askForProof(proof)
                }
            }
            choices.append(send)
        }
        if proof.ways.contains(.passkey) {
            choices.append(Question.Choice(label: Word.passkey.text) { _ in await attempt { try await proof.byPasskey() } })
        }
        choices.append(Question.Choice(label: Word.cancel.text, isRefusal: true) { _ in await proof.refuse() })
        ask(Question(title: title, field: sentTo.map { Word.codeSentTo.text($0) }, choices: choices))
    }

    private func askToCompare(
        _ title: String, _ client: String, _ code: String, refuse: String,
        _ answer: @escaping @MainActor (_ isApproved: Bool) async throws -> Void
    ) {
        let choices = [
            Question.Choice(label: Word.approve.text) { _ in try await answer(true) },
            Question.Choice(label: refuse) { _ in try await answer(false) },
            Question.Choice(label: Word.later.text, isRefusal: true) { _ in },
        ]
        ask(Question(title: title, text: "\(client)\n\n\(Word.approveOnlyIfSame.text)\n\n\(code)", choices: choices))
    }
}
