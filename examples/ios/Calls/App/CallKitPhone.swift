import AVFAudio
import CallKit
import CallsignApp

/// The calls as CallKit knows them: its screen, the lock screen, a headset, a watch and a car.
@MainActor final class CallKitPhone: NSObject, CallSystem {
    private let provider = CXProvider(configuration: CallKitPhone.configuration)
    private let controller = CXCallController()
    private let phone: Phone

    init(_ phone: Phone) {
        self.phone = phone
        super.init()
        provider.setDelegate(self, queue: nil)
    }

    /// One call at a time: two would have one microphone. A second one rings with "End & Accept".
    private static var configuration: CXProviderConfiguration {
        let configuration = CXProviderConfiguration()
        configuration.maximumCallGroups = 1
        configuration.maximumCallsPerCallGroup = 1
        configuration.supportsVideo = true
        configuration.supportedHandleTypes = [.generic]
        return configuration
    }

    func ring(_ call: SystemCall, _ reported: @escaping @MainActor (_ isShown: Bool) -> Void) {
        provider.reportNewIncomingCall(with: call.uuid, update: update(call)) { error in
            let isShown = error == nil
            Task { @MainActor in reported(isShown) }
        }
    }

    func place(_ call: SystemCall) async -> Bool {
        let action = CXStartCallAction(call: call.uuid, handle: CXHandle(type: .generic, value: call.handle))
        action.isVideo = call.isVideo
        guard await isTaken(action) else { return false }
        provider.reportCall(with: call.uuid, updated: update(call))
        return true
    }

    func connected(_ uuid: UUID) { provider.reportOutgoingCall(with: uuid, connectedAt: nil) }

    func ended(_ uuid: UUID, _ reason: SystemEnd) {
        provider.reportCall(with: uuid, endedAt: nil, reason: reason.callKit)
    }

    func answer(_ uuid: UUID) {
        Task { _ = await isTaken(CXAnswerCallAction(call: uuid)) }
    }

    func hangUp(_ uuid: UUID) {
        Task {
            // CallKit may not know of it, such as in a Focus.
            if await !isTaken(CXEndCallAction(call: uuid)) { phone.hangUp(uuid) }
        }
    }

    private func isTaken(_ action: CXCallAction) async -> Bool {
        await withCheckedContinuation { taken in
            controller.request(CXTransaction(action: action)) { error in taken.resume(returning: error == nil) }
        }
    }

    private func update(_ call: SystemCall) -> CXCallUpdate {
        let update = CXCallUpdate()
        update.remoteHandle = CXHandle(type: .generic, value: call.handle)
        update.localizedCallerName = call.name
        update.hasVideo = call.isVideo
        update.supportsHolding = false
        update.supportsGrouping = false
        update.supportsUngrouping = false
        update.supportsDTMF = false
        return update
    }

    /// CallKit activates it, with the priority of a phone call.
    private func prepareAudio() {
        do {
            try AVAudioSession.sharedInstance().setCategory(.playAndRecord, mode: .voiceChat, options: [.allowBluetooth])
        } catch {
            NSLog("calls: %@", "\(error)")
        }
    }
}

/// CallKit calls these on the main queue.
extension CallKitPhone: @preconcurrency CXProviderDelegate {
    func providerDidReset(_ provider: CXProvider) { phone.hangUpAll() }

    func provider(_ provider: CXProvider, perform action: CXStartCallAction) {
        prepareAudio()
        provider.reportOutgoingCall(with: action.callUUID, startedConnectingAt: nil)
        action.fulfill()
    }

    func provider(_ provider: CXProvider, perform action: CXAnswerCallAction) {
        prepareAudio()
        Task {
            if await phone.answer(action.callUUID) { action.fulfill() } else { action.fail() }
        }
    }

    func provider(_ provider: CXProvider, perform action: CXEndCallAction) {
        phone.hangUp(action.callUUID)
        action.fulfill()
    }

    /// The sound begins here, and not before: WebRTC's audio unit would have no microphone.
    func provider(_ provider: CXProvider, didActivate audioSession: AVAudioSession) {}

    func provider(_ provider: CXProvider, didDeactivate audioSession: AVAudioSession) {}
}
