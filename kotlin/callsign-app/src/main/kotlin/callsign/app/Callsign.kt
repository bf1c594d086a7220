/** One user of a calling app on one device: sign-in, contacts, devices and calls. */
package callsign.app

import callsign.app.CallsignException.LocalCode
import callsign.app.calls.Calls
import callsign.app.calls.Kept
import callsign.app.calls.StartOptions
import callsign.app.calls.invitationIn
import callsign.app.calls.readKept
import callsign.verify.CompletenessDemand
import callsign.verify.LogKeys
import java.util.Locale
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Deferred
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.async
import kotlinx.coroutines.cancel
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asStateFlow
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.job
import kotlinx.coroutines.launch
import kotlinx.coroutines.selects.select
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock
import kotlinx.coroutines.withContext
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import okhttp3.OkHttpClient

/** News beside those of the calls. */
public sealed interface CallsignEvent {
    /** After each connection: the user, calls and devices are as the server has them now. */
    public data object Ready : CallsignEvent

    /** A call of before a restart goes on. */
    public data class Resumed(public val call: Call) : CallsignEvent

    /** Show it: a contact has new devices, keys were refused, or a call goes on without someone. */
    public data class KeysChanged(public val event: KeyEvent) : CallsignEvent

    /** A message of the server, such as `friend_request`, after the SDK has done its part: docs/reference/operations.md has the types. */
    public data class Message(public val type: String, public val members: JsonObject) : CallsignEvent

    /** The server has ended the session. */
    public data class SignedOut(public val error: CallsignException) : CallsignEvent

    /** Something that goes on by itself has failed. */
    public data class Failed(public val error: CallsignException) : CallsignEvent

    /** So many events were dropped here, because the collector was too slow. */
    public data class Missed(public val count: Int) : CallsignEvent
}

/**
 * Safe to use from any thread; one for each [storage]. An operation goes on to its end where its caller is cancelled.
 *
 * @param pins the keys of the server's log, or its policy, built into the app.
 * @param keysOf the device's keys, where they are kept elsewhere than in [storage], such as in Android's Keystore.
 * @param device facts about the device and its push token, sent at each start.
 * @param passkeys what makes passkeys and signs by them, such as Android's Credential Manager.
 * @param sealedPushes with true, pushes are sealed for this device, and neither Apple nor Google can read them; false takes that
 * back, and null changes nothing.
 * @param completeness whether the log's index has to prove keys the newest ones; unless given, where the policy in [pins] names the
 * index, or it has proved some before. Keys without that proof are refused with `KEYS_REFUSED`, whose `check` is `completeness`.
 * @param maxIndexAgeMs how many milliseconds ago the policy's quorum may have seen the index's newest leaf; unless given, a day.
 */
public class Callsign(
    private val server: Server,
    private val pins: LogKeys,
    private val storage: AppStorage,
    private val keysOf: DeviceKeysOf = softwareKeys(storage),
    private val device: DeviceDetails = DeviceDetails(),
    private val onReset: OnReset = OnReset.ASK,
    private val passkeys: PasskeyAuthenticator? = null,
    private val sealedPushes: Boolean? = null,
    private val completeness: CompletenessDemand? = null,
    private val maxIndexAgeMs: Long? = null,
) {
    /**
     * @param server such as `https://call.example.org`.
     * @param http the client of OkHttp, to share one with the app.
     * @param tlsPins `sha256/` and base64 of SHA-256 of public keys: nothing is sent to the server unless its chain of certificates has
     * one of them. Give two, one of them a spare.
     * @param clientVersion `X-Client-Version`, such as `android/1.4.2 (214)`.
     * @param onReset whether new keys of a contact that nothing known vouches for are asked about; a bot goes on.
     * @param language the tag of the user's language, such as `vi-VN`, in which errors have their [CallsignException.sentence]; the
     * phone's where it is left out.
     */
    public constructor(
        server: String,
        pins: LogKeys,
        storage: AppStorage,
        keysOf: DeviceKeysOf = softwareKeys(storage),
        device: DeviceDetails = DeviceDetails(),
        http: OkHttpClient = OkHttpClient(),
        clientVersion: String? = null,
        onReset: OnReset = OnReset.ASK,
        passkeys: PasskeyAuthenticator? = null,
        tlsPins: List<String> = emptyList(),
        language: String = Locale.getDefault().toLanguageTag(),
        sealedPushes: Boolean? = null,
        completeness: CompletenessDemand? = null,
        maxIndexAgeMs: Long? = null,
    ) : this(
        Server(server, http, clientVersion, tlsPins = tlsPins, language = language),
        pins,
        storage,
        keysOf,
        device,
        onReset,
        passkeys,
        sealedPushes,
        completeness,
        maxIndexAgeMs,
    )

    /** The parts of one signed-in user. */
    private class Active(
        val scope: CoroutineScope,
        val device: RegisteredDevice,
        val connection: Connection,
        val calls: Calls,
        val account: Account,
        val contacts: Contacts,
        val names: Names,
        val devices: Devices,
        val sessions: Sessions,
        val userTokens: UserTokens,
    )

    private class Reading {
        var told: User? = null
    }

    private val operations = Operations(::report)
    private val beginning = Mutex()
    private var session: Session? = null

    @Volatile
    private var active: Active? = null
    private val users = MutableStateFlow<User?>(null)
    private val badges = MutableStateFlow<Badge?>(null)

    /** The newest reading of the user, and what the queue tells meanwhile. */
    private var reading: Reading? = null

    /** Completed when the app is closed, and then replaced: a sign-in that was under way does not connect. */
    @Volatile
    private var closing = CompletableDeferred<Unit>()
    private var finishing: Deferred<User>? = null
    private val connections = MutableStateFlow(ConnectionState.OFF)
    private val live = MutableStateFlow<List<Call>>(emptyList())
    private val asked = MutableStateFlow<ProofQuestion?>(null)

    /** Ids of events, the oldest first. */
    private val pushesSeen = LinkedHashSet<String>()
    private val news = EventStream<CallsignEvent>(EVENTS_MAX, CallsignEvent::Missed)

    /** Null until it was read from the server. */
    public val user: StateFlow<User?> = users.asStateFlow()

    /** For the badge of the app; null until the server has said it. */
    public val badge: StateFlow<Badge?> = badges.asStateFlow()
    public val connection: StateFlow<ConnectionState> = connections.asStateFlow()

    /** Those that ring, and the one that this device is in. */
    public val calls: StateFlow<List<Call>> = live.asStateFlow()

    /** Incoming calls, each once. One that rings already comes at once. */
    public val ringing: Flow<Call> = flow {
        val told = HashSet<Call>()
        calls.collect { all ->
            told.retainAll(all.toSet())
            for (call in all)
                if (call.isIncoming && call.state.value == CallState.RINGING && told.add(call)) emit(call)
        }
    }

    /**
     * The server refuses what the app has asked for until the user proves who they are: ask them, until it is null again. Where
     * nobody collects it, the operation throws `STEP_UP_REQUIRED`.
     */
    public val proofNeeded: StateFlow<ProofQuestion?> = asked.asStateFlow()

    /** A collector that falls more than 1,024 behind gets one [CallsignEvent.Missed] for those it missed. */
    public val events: Flow<CallsignEvent> = news.flow

    /** Attempts to connect that failed in a row: after a few, say that there is no connection. */
    @Volatile
    public var connectionFailures: Int = 0
        private set

    /**
     * Why this device may do little yet: the user has to approve it, and [Devices.listState] has the code. Null for all others.
     */
    public val restriction: String? get() = users.value?.restriction

    public val userId: ULong? get() = active?.device?.userId
    public val deviceId: ULong? get() = active?.device?.deviceId

    /** Throws `SIGNED_OUT`. */
    public val account: Account get() = assertActive().account

    /** Throws `SIGNED_OUT`. */
    public val contacts: Contacts get() = assertActive().contacts

    /** Throws `SIGNED_OUT`. */
    public val devices: Devices get() = assertActive().devices

    /** Throws `SIGNED_OUT`. */
    public val sessions: Sessions get() = assertActive().sessions

    /**
     * Goes on with the session in the storage. Returns the user's id, null without one. Works without a network, too, once this
     * device is registered.
     */
    public suspend fun resume(): ULong? = operations.run { resumed()?.device?.userId }

    /**
     * Signs in by a code to an email address or phone number, makes this device's keys and registers them. [confirm] asks the
     * user for the code, as often as it may be tried. Goes on with the session in the storage where it is of the same address;
     * throws `ALREADY_SIGNED_IN` where it is of another. [displayName] counts for a newcomer, [country] for a phone number
     * without calling code, [attestation] is what the operator's check asks of the app. Throws `SIGN_IN_WAITING` where the account has other devices, which are asked: go on with
     * [finishSignIn]. With [reclaim] the address becomes the next one of this device's account, which has lost its last.
     */
    public suspend fun signIn(
        address: String,
        displayName: String? = null,
        country: String? = null,
        reclaim: Boolean = false,
        attestation: String? = null,
        confirm: suspend (CodeQuestion) -> String,
    ): User {
        val closed = closing
        val session = operations.run { openSession() }
        if (session.userId != null) return operations.run { goOn(session, address, closed) }
        val options = SignInOptions(displayName, country, attestation, reclaim)
        val user = codeSignIn(session).signIn(address, options, confirm)
        return operations.run { welcome(session, user, address, closed) }
    }

    /** A sign-in of this app that waits for its owner, also one of before a restart. */
    public suspend fun waitingSignIn(): WaitingSignIn? = operations.run { codeSignIn(openSession()).waiting() }

    /**
     * Waits, as long as it takes, until a device of the user approves the sign-in or its time has passed. Throws
     * `SIGN_IN_REFUSED`, `SIGN_IN_GONE` where none waits any more, and `SIGNED_OUT` when the app is closed: the sign-in waits on.
     */
    public suspend fun finishSignIn(): User {
        val closed = closing
        // Once for all who ask at the same time.
        val entering = operations.run { finishing?.takeIf { it.isActive } ?: finishIn(operations.scope, closed) }
        return select {
            entering.onAwait { it }
            closed.onAwait {
                throw CallsignException(LocalCode.SIGNED_OUT, "The app was closed while a sign-in waited.")
            }
        }
    }

    /** Signs in by what an identity provider has signed, such as Google's ID token. */
    public suspend fun signInByProvider(
        provider: String,
        idToken: String,
        nonce: String? = null,
        displayName: String? = null,
    ): User = operations.run {
        val closed = closing
        val session = openSession()
        if (session.userId != null) return@run goOn(session, provider, closed)
        val user = session.verifyProvider(provider, idToken, nonce, displayName)
        welcome(session, user, provider, closed)
    }

    /** Signs in by a passkey, which waits for no other device. Throws `PASSKEY_CANCELLED` where the person gives none. */
    public suspend fun signInByPasskey(): User {
        val closed = closing
        val session = operations.run { openSession() }
        if (session.userId != null) return operations.run { goOn(session, PASSKEY, closed) }
        val present = passkeys.assertPresent()
        val options = operations.run { session.passkeyOptions() }
        val credential = present.credential { get(options.toString()) }
        return operations.run { welcome(session, session.verifyPasskey(credential), PASSKEY, closed) }
    }

    /**
     * Signs in by a token that the app's own backend got from the server: each is good once, for a minute. Throws
     * `ALREADY_SIGNED_IN` where there is a session, which [resume] goes on with. May wait as [signIn] does.
     */
    public suspend fun signInByToken(token: String): User {
        val closed = closing
        val session = operations.run { openSession() }
        if (session.userId != null) return operations.run { goOn(session, token, closed) }
        val user = codeSignIn(session).signInByToken(token)
        return operations.run { welcome(session, user, token, closed) }
    }

    /** Makes a passkey of this device, or of the person's password manager, a login method; [label] is what they call it. */
    public suspend fun addPasskey(label: String? = null): LoginMethod {
        val present = passkeys.assertPresent()
        val session = operations.run { openSession() }
        val options = session.ask("POST", "user/passkeys/options").member("options")
        val credential = present.credential { create(options.toString()) }
        val method = bodyOf(mapOf("label" to label)) + ("credential" to credential)
        return operations.run { loginMethodOf(session.ask("POST", "user/passkeys", JsonObject(method))) }
    }

    /** Ends the session on the server. Keys stay: the next sign-in of this user is the same device. */
    public suspend fun signOut(allDevices: Boolean = false): Unit = operations.run {
        val session = openSession()
        if (session.userId != null) session.logout(allDevices)
        end()
    }

    /** Calls contacts. Throws, and nothing rings, unless all their devices verify. [roomId] is one that the app has made. */
    public suspend fun call(
        userIds: List<ULong>,
        isVideo: Boolean = false,
        roomId: Long? = null,
        without: Without = Without.REFUSE,
    ): Call = operations.run { assertActive().calls.start(userIds, StartOptions(isVideo, roomId), without) }

    public suspend fun call(userId: ULong, isVideo: Boolean = false): Call = call(listOf(userId), isVideo)

    /** Brings a call of the user to this device: from another device, or one that they had left or missed. */
    public suspend fun join(callId: String): Call = operations.run { assertActive().calls.join(callId) }

    /**
     * A JWT that shows a service of the operator who the user is, good for a minute at least (docs/build/backend.md). Throws
     * `AUDIENCE_UNKNOWN` for a service that the operator has not listed.
     */
    public suspend fun tokenFor(audience: String): String =
        operations.run { assertActive().userTokens.tokenFor(audience) }

    /** Any operation of docs/openapi.json, such as `GET` and `call/history`, also before this device is registered. */
    public suspend fun request(method: String, operation: String, body: JsonObject? = null): JsonElement? =
        operations.run { openSession() }.request(method, operation, body)

    /**
     * Ends the pause before the next attempt to connect: say it when the network is back. Also comes back from
     * [ConnectionState.ELSEWHERE].
     */
    public suspend fun connect(): Unit = operations.run { assertActive().connection.connect() }

    /** Disconnects, and keeps the session for the next start. Calls go on without this device. */
    public suspend fun close(): Unit = operations.run {
        closing.complete(Unit)
        closing = CompletableDeferred()
        finishing?.cancel()
        // After a start that is under way.
        beginning.withLock { end() }
    }

    /**
     * Says how to show a push: [members] are the `data` of an FCM message. Does not wait for the network where this device is
     * registered; the connection is made beside. A call that rings by it comes out of [ringing], too.
     *
     * @param wasLowered whether the message's `getPriority()` is no longer the high one of `getOriginalPriority()`.
     */
    public suspend fun onPush(members: Map<String, String>, wasLowered: Boolean = false): PushAction = operations.run {
        val begun = resumed() ?: return@run PushAction.Nothing
        begun.connection.connect()
        show(opened(members, begun.device) ?: return@run PushAction.Nothing, wasLowered, begun)
    }

    /** A push that is not sealed is taken, too: it was on its way when the server got the key. */
    private suspend fun opened(members: Map<String, String>, device: RegisteredDevice): Map<String, String>? {
        val sealed = members["sealed"] ?: return members
        return pushKeyOf(storage, device.userId)?.let { openPush(it, device.deviceId, sealed) }
    }

    private fun show(members: Map<String, String>, wasLowered: Boolean, begun: Active): PushAction {
        if (isOwnStart(members["type"], members["sessionId"])) return PushAction.Nothing
        val isSeen = !pushesSeen.add(members["eventId"].orEmpty())
        if (pushesSeen.size > PUSHES_SEEN_MAX) pushesSeen.remove(pushesSeen.first())
        val serverNowMs = if (server.isTimeKnown) server.serverTimeMs() else null
        val action = judgePush(members, begun.device.deviceId, serverNowMs, isSeen, wasLowered)
        when (action) {
            is PushAction.Ringing -> invitationIn(members, wasLowered)?.let(begun.calls::onInvitation)
            is PushAction.StopRinging -> begun.calls.onCancelled(action.callId, endingOf(action.reason.wireName))
            else -> Unit
        }
        return action
    }

    private fun assertActive(): Active = active ?: throw signedOut()

    private suspend fun openSession(): Session = beginning.withLock { openSessionNow() }

    private suspend fun openSessionNow(): Session = session ?: Session.open(server, storage).also { opened ->
        session = opened
        opened.proveBy(StepUp(opened, keysOf, passkeys, operations, asked))
        operations.scope.launch(start = CoroutineStart.UNDISPATCHED) {
            opened.ended.collect { error ->
                // After a start that is under way.
                beginning.withLock { end(endingBy(error.members.text("reason"))) }
                tell(CallsignEvent.SignedOut(error))
            }
        }
    }

    /** Null without a session in the storage. */
    private suspend fun resumed(): Active? = beginning.withLock {
        val session = openSessionNow()
        if (session.userId == null) null else active ?: beginNow(session)
    }

    private fun finishIn(scope: CoroutineScope, closed: CompletableDeferred<Unit>): Deferred<User> = scope.async {
        val session = openSession()
        val (user, address) = codeSignIn(session).finish()
        withContext(NonCancellable) { welcome(session, user, address, closed) }
    }.also { finishing = it }

    /** That the user has signed in here is no news to them. */
    private fun isOwnStart(type: String?, sessionId: String?) = type == "session_started" && sessionId == session?.id

    private fun codeSignIn(session: Session) = CodeSignIn(session, storage, keysOf)

    private suspend fun goOn(session: Session, address: String, closed: CompletableDeferred<Unit>): User {
        val last = storage.lastSignIn()
        if (last?.userId != session.userId || last?.address != normalized(address)) {
            val sentence = "Another user is signed in. Sign out first, or resume."
            throw CallsignException(LocalCode.ALREADY_SIGNED_IN, sentence)
        }
        if (!closed.isCompleted) begin(session)
        return users.value ?: readUser(session)
    }

    private suspend fun welcome(session: Session, user: User, address: String, closed: CompletableDeferred<Unit>): User {
        storage.keepLastSignIn(user.userId, address)
        if (closed.isCompleted) return user
        users.value = user
        begin(session, isNew = true)
        // Its device may be one that the user's list names.
        if (user.restriction != null) reporting(::report) { showUser(session) }
        return users.value ?: user
    }

    /** Once for all who ask at the same time. */
    private suspend fun begin(session: Session, isNew: Boolean = false): Active =
        beginning.withLock { active ?: beginNow(session, isNew) }

    private suspend fun beginNow(session: Session, isNew: Boolean = false): Active {
        val registration = DeviceRegistration(server, session, storage, keysOf, sealedPushes)
        val known = registration.known()
        // A device that is known can ring without a network, or an answer; a new session has no device before.
        val registering = known?.let { operations.scope.launch { reporting(::report) { registration.register(device) } } }
        if (isNew) registering?.join()
        val begun = activate(session, registration, known ?: registration.register(device))
        active = begun
        begun.connection.connect()
        return begun
    }

    private suspend fun activate(session: Session, registration: DeviceRegistration, registered: RegisteredDevice): Active {
        val context = operations.scope.coroutineContext
        val scope = CoroutineScope(context + SupervisorJob(context.job))
        val transport = OkHttpTransport(server.http, session)
        val keyLog = KeyLog(session, storage, registered, pins, server.prefix, transport, onReset, completeness, maxIndexAgeMs) {
            tell(CallsignEvent.KeysChanged(it))
        }
        val ownList = OwnDeviceList(server, session, keyLog, registered)
        val exchange = KeyExchange(keyLog, session, operations.scope)
        val listener = Listener(session, registration)
        val kept = try {
            readKept(storage, registered.userId)
        } catch (_: CallsignException) {
            // Each connection reads it again, and says why where it can't.
            Kept()
        }
        val connection = Connection(scope, server, session, listener)
        val names = Names { active?.calls?.onNames() }
        val calls = Calls(
            operations = operations,
            server = server,
            session = session,
            connection = connection,
            exchange = exchange,
            names = names,
            registered = registered,
            storage = storage,
            kept = kept,
            onResumed = { tell(CallsignEvent.Resumed(it)) },
            onChanged = { live.value = active?.calls?.all.orEmpty() },
            onLeftOut = { userId, deviceId -> tell(CallsignEvent.KeysChanged(KeyEvent.LeftOut(userId, deviceId))) },
        )
        scope.launch { reporting(::report) { keyLog.checkOwn() } }
        return Active(
            scope = scope,
            device = registered,
            connection = connection,
            calls = calls,
            account = Account(session),
            contacts = Contacts(session, keyLog, names, operations),
            names = names,
            devices = Devices(session, keyLog, ownList, operations),
            sessions = Sessions(session, registered, operations),
            userTokens = UserTokens(operations.scope, server.nowMs) {
                session.ask("POST", "user/tokens", bodyOf(mapOf("audience" to it)))
            },
        )
    }

    private inner class Listener(
        private val session: Session,
        private val registration: DeviceRegistration,
    ) : ConnectionListener {
        override fun onState(state: ConnectionState, failures: Int) {
            connectionFailures = failures
            if (state != ConnectionState.CONNECTED) active?.calls?.onDisconnected()
            connections.value = state
            if (state == ConnectionState.ELSEWHERE) active?.calls?.closeAll(CallEnding.MOVED)
        }

        override suspend fun onConnected() {
            val begun = active ?: return
            val connectedAtMs = begun.connection.connectedAtMs
            var waitMs = READ_AGAIN_MS
            while (begun.connection.state == ConnectionState.CONNECTED && begun.connection.connectedAtMs == connectedAtMs) {
                try {
                    val isAll = isAllowed { begun.calls.onConnected() }
                    showUser(session)
                    begun.devices.load()
                    if (isAll) begun.contacts.loadNames()
                    // The server ends the connection once the device is approved.
                    if (isAll) tell(CallsignEvent.Ready)
                    return
                } catch (error: CallsignException) {
                    report(error)
                    if (error.hasCode(LocalCode.KEYS_REFUSED)) return
                }
                delay(waitMs)
                waitMs = minOf(2 * waitMs, READ_AGAIN_MS_MAX)
            }
        }

        override suspend fun onEvent(event: JsonObject) {
            val begun = assertActive()
            val type = event.needText("type")
            if (isOwnStart(type, event.text("sessionId"))) return
            begun.names.onEvent(event)
            if (type == "profile_changed") {
                users.value = userOf(event)
                reading?.told = userOf(event)
            }
            if (type == "badge") badges.value = badgeOf(event)
            else (event["badge"] as? JsonObject)?.let { badges.value = badgeOf(it) }
            try {
                // Before the connection ends, which says no more than that the session is over.
                val ending = if (type == "session_revoked") endingBy(event.text("reason")) else CallEnding.LEFT
                if (ending == CallEnding.SUSPENDED) begun.calls.closeAll(ending)
                begun.calls.onMessage(event)
                if (type in DEVICE_EVENTS) begun.devices.load()
            } finally {
                tell(CallsignEvent.Message(type, event))
            }
        }

        override suspend fun onDeviceMissing() {
            registration.register(device)
        }

        override fun onTrouble(error: Throwable) = report(error)
    }

    private suspend fun showUser(session: Session) {
        val newest = Reading()
        reading = newest
        val user = readUser(session)
        // A newer one is under way, or the user has signed out.
        if (reading === newest) users.value = newest.told ?: user
    }

    private suspend fun readUser(session: Session): User = userOf(session.ask("GET", "user"))

    private suspend fun end(ending: CallEnding = CallEnding.LEFT) {
        val ended = active ?: return
        active = null
        reading = null
        users.value = null
        badges.value = null
        ended.calls.closeAll(ending)
        // The listener has no calls any more to tell it.
        ended.calls.onDisconnected()
        live.value = emptyList()
        ended.connection.disconnect()
        ended.scope.cancel()
    }

    private fun tell(event: CallsignEvent) {
        news.tell(event)
    }

    private fun report(error: Throwable) {
        if (!error.hasCode(LocalCode.SIGNED_OUT, LocalCode.OFFLINE)) tell(CallsignEvent.Failed(asCallsign(error)))
    }

    private companion object {
        const val PUSHES_SEEN_MAX = 500
        const val EVENTS_MAX = 1_024

        /** How calls end here with the session: people whose account was suspended are to know. */
        fun endingBy(reason: String?): CallEnding =
            if (reason == "account_suspended") CallEnding.SUSPENDED else CallEnding.LEFT

        /** In place of an address. */
        const val PASSKEY = "passkey"
        const val READ_AGAIN_MS = 10_000L
        const val READ_AGAIN_MS_MAX = 600_000L
        val DEVICE_EVENTS = setOf("device_added", "device_removed", "device_list_changed", "device_list_reset")
    }
}
