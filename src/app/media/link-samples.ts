/** Packets and frames received on a connection, as the browser counts them: the one place that reads its statistics. */

/** One track's counts, since the connection began. */
export interface TrackSample {
  readonly packets: number
  /** Packets that never came. */
  readonly lost: number
  readonly bytes: number
  /** Frames of a picture. */
  readonly decoded: number
  /** How often a picture stood still. */
  readonly freezes: number
  /** Samples of sound that were played, and those of them that were made up in place of lost ones. */
  readonly played: number
  readonly concealed: number
  /** In seconds. */
  readonly jitter: number
  /** Loudness, 0 to 1. */
  readonly level: number
}

/** By the transceiver's mid. */
export async function readSamples(connection: RTCPeerConnection): Promise<ReadonlyMap<string, TrackSample>> {
  const reports = [...(await connection.getStats()).values()]
  return new Map(
    reports
      .filter(({ type }) => type === 'inbound-rtp')
      .map(report => [
        report.mid,
        {
          packets: report.packetsReceived ?? 0,
          lost: report.packetsLost ?? 0,
          bytes: (report.bytesReceived ?? 0) + (report.headerBytesReceived ?? 0),
          decoded: report.framesDecoded ?? 0,
          freezes: report.freezeCount ?? 0,
          played: report.totalSamplesReceived ?? 0,
          concealed: report.concealedSamples ?? 0,
          jitter: report.jitter ?? 0,
          level: report.audioLevel ?? 0,
        },
      ]),
  )
}
