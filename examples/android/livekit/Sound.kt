/**
 * The sound of a call whose gateway is LiveKit, by LiveKit's SDK. Not part of the app that Maven compiles, which has no LiveKit: put it
 * beside the other sources, with `implementation("io.livekit:livekit-android:2.26.0")`.
 */
package org.example.calls

import android.content.Context
import callsign.app.Call
import callsign.app.allowAes128
import io.livekit.android.LiveKit
import io.livekit.android.RoomOptions
import io.livekit.android.e2ee.BaseKeyProvider
import io.livekit.android.e2ee.E2EEOptions
import io.livekit.android.e2ee.KeyProvider
import io.livekit.android.room.track.LocalAudioTrack
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.flow.drop
import kotlinx.coroutines.flow.filterNotNull
import kotlinx.coroutines.launch

/** The gateway's own frames, which it could mark as such, are not played. */
private class CallKeyProvider(keys: KeyProvider) : KeyProvider by keys {
    override fun setSifTrailer(trailer: ByteArray) = Unit
}

/** The call's sound, until the scope is cancelled. */
suspend fun joinSound(context: Context, call: Call) = coroutineScope {
    call.allowAes128()
    val keys = BaseKeyProvider(
        uncryptedMagicBytes = "",
        ratchetWindowSize = 0,
        enableSharedKey = false,
        failureTolerance = -1,
        discardFrameWhenCryptorNotReady = true,
    )
    launch { call.liveKitKeys.collect { keys.setKey(it.key, it.identity, it.keyIndex) } }
    val room = LiveKit.create(context, RoomOptions(e2eeOptions = E2EEOptions(CallKeyProvider(keys))))
    try {
        room.connect(checkNotNull(call.media?.url), checkNotNull(call.media?.token))
        check(room.localParticipant.identity?.value == call.self?.identity)
        val me = room.localParticipant
        me.setMicrophoneEnabled(true)
        // A track keeps the key index that it was published with.
        call.sendingKey.filterNotNull().drop(1).collect {
            val track = me.audioTrackPublications.firstNotNullOfOrNull { (_, track) -> track as? LocalAudioTrack }
            track?.let {
                me.unpublishTrack(it, stopOnUnpublish = false)
                me.publishAudioTrack(it)
            }
        }
    } finally {
        room.disconnect()
        room.release()
    }
}
