/**
 * What a device signs with its signing key besides device lists. Each message begins with a line of its own, and so does a
 * list, so that no signature can be taken for another.
 */
package callsign.verify

import java.nio.ByteBuffer

/**
 * For `register_device`: the device has the signing key. [challenge] has 32 octets, from sign-in. Throws `MALFORMED` for another
 * length.
 */
public fun possessionMessage(challenge: ByteArray): ByteArray =
    POSSESSION_LINE + ofLength(challenge, POSSESSION_CHALLENGE_OCTETS)

/**
 * For `verify-login`: a listed device signs in again. [challengeId] has 16 octets, the code's challenge. Throws `MALFORMED` for
 * another length.
 */
public fun signInMessage(challengeId: ByteArray): ByteArray = SIGN_IN_LINE + ofLength(challengeId, SIGN_IN_ID_OCTETS)

/**
 * A listed device's answer to a sign-in that waits. [id] has 16 octets, the waiting sign-in's. Throws `MALFORMED` for another
 * length.
 */
public fun signInAnswerMessage(userId: ULong, id: ByteArray, isApproved: Boolean): ByteArray =
    ByteBuffer.allocate(ANSWER_LINE.size + 8 + SIGN_IN_ID_OCTETS + 1)
        .put(ANSWER_LINE)
        .putLong(userId.toLong())
        .put(ofLength(id, SIGN_IN_ID_OCTETS))
        .put((if (isApproved) 1 else 0).toByte())
        .array()

/**
 * Beside a fresh proof of who the user is: the device that asks is a listed one. [proof] has 32 octets: SHA-256 of a text, such
 * as a code's challengeId. Throws `MALFORMED` for another length.
 */
public fun stepUpMessage(userId: ULong, proof: ByteArray): ByteArray =
    ByteBuffer.allocate(STEP_UP_LINE.size + 8 + STEP_UP_PROOF_OCTETS)
        .put(STEP_UP_LINE)
        .putLong(userId.toLong())
        .put(ofLength(proof, STEP_UP_PROOF_OCTETS))
        .array()

private const val POSSESSION_CHALLENGE_OCTETS = 32
private const val STEP_UP_PROOF_OCTETS = 32

/** A challenge's id, and a waiting sign-in's. */
private const val SIGN_IN_ID_OCTETS = 16
private val POSSESSION_LINE = "callsign possession v1\n".toByteArray()
private val SIGN_IN_LINE = "callsign sign-in v1\n".toByteArray()
private val ANSWER_LINE = "callsign sign-in answer v1\n".toByteArray()
private val STEP_UP_LINE = "callsign step-up v1\n".toByteArray()
