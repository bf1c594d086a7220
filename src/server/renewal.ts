/** The settings that a running server takes anew, on SIGHUP: certificates, and the list of media gateways. */

import { messageOf } from '../errors.ts'
import { refusalOfMedia } from '../media/current-media.ts'
import type { MediaSettings } from '../media/media-settings.ts'
import type { GrpcServer } from '../transport/grpc.ts'
import type { HttpServer } from '../transport/http.ts'
import type { Process } from './process/process.ts'
import { type Config, ConfigError } from './settings/config.ts'

/** The server of the public port, in this process or in fronts. */
export type RenewedServer = Pick<HttpServer, 'renewCertificate'> & {
  /** Resolves when the other processes make tokens for these gateways. */
  readonly renewMedia?: (settings: MediaSettings) => Promise<void>
}

/** Takes them as `read` returns them. A broken one is logged, and the one in use stays. */
export async function renewSettings(
  context: Process,
  http: RenewedServer,
  grpc: GrpcServer,
  read: () => Config,
): Promise<void> {
  const { logger, media } = context
  const failed = (event: string) => (error: unknown) => {
    const problems = error instanceof ConfigError ? error.problems : [messageOf(error)]
    logger.error({ event, problems })
  }
  const certificatesFailed = failed('certificates-not-renewed')
  const mediaFailed = failed('media-gateways-not-renewed')
  let next: Config
  try {
    next = read()
  } catch (error) {
    certificatesFailed(error)
    if (media.settings !== undefined) mediaFailed(error)
    return
  }
  await renewCertificates(context, http, grpc, next).catch(certificatesFailed)
  await renewMedia(context, http, next).catch(mediaFailed)
}

async function renewCertificates(
  { config, logger }: Process,
  http: RenewedServer,
  grpc: GrpcServer,
  next: Config,
): Promise<void> {
  if (config.http.tls !== undefined && next.http.tls !== undefined) {
    await http.renewCertificate(next.http.tls)
  }
  if (config.grpc.tls !== undefined && next.grpc.tls !== undefined) {
    grpc.renewCertificate(next.grpc.tls)
  }
  logger.info({ event: 'certificates-renewed' })
}

async function renewMedia({ media, logger }: Process, http: RenewedServer, next: Config): Promise<void> {
  const settings = next.application.media
  const refusal = refusalOfMedia(media.settings, settings)
  if (refusal !== undefined) throw new ConfigError([refusal])
  if (settings?.kind !== 'janus') return
  await media.replace(settings, async () => {
    await http.renewMedia?.(settings).catch(error => {
      // A front that starts anew has the new list.
      logger.warn({ event: 'media-gateways-late', err: error })
    })
  })
  const gateways = settings.gateways.map(({ name, isDraining }) => (isDraining ? `${name} (drains)` : name))
  logger.info({ event: 'media-gateways-renewed', gateways })
}
