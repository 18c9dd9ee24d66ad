/** The SDK's client, as a connection needs it. */

import { S3, type S3ClientConfig } from '@aws-sdk/client-s3'
import { type ProxySettings, TunnelAgent, throughProxies } from './proxy.js'
import { S3_DEFAULTS, type S3Options } from './spec.js'

/** The options of a connection, including the proxies of the environment. */
export interface ConnectionOptions extends S3Options {
  readonly proxies: ProxySettings
}

/** Makes a client. Without a configured region it takes S3's default; S3 names the region of a bucket that is elsewhere. */
export async function withRegion(options: ConnectionOptions): Promise<S3> {
  const client = clientOf(options)
  try {
    await client.config.region()
    return client
  } catch {
    return clientOf({ ...options, region: 'us-east-1' })
  }
}

export function clientOf(options: ConnectionOptions): S3 {
  const { endpoint, region, forcePathStyle, credentials, anonymous, proxies } = options
  const maxSockets = options.maxSockets ?? S3_DEFAULTS.maxSockets
  const requestTimeout = options.requestTimeoutMs ?? S3_DEFAULTS.requestTimeoutMs
  const agent = { keepAlive: true, maxSockets }
  const config: S3ClientConfig = {
    ...(endpoint !== undefined && { endpoint }),
    ...(region !== undefined && { region }),
    ...(forcePathStyle !== undefined && { forcePathStyle }),
    // The SDK writes into the credentials that it is given: it gets a copy.
    ...(credentials && { credentials: { ...credentials } }),
    ...(anonymous && ANONYMOUS),
    maxAttempts: 1,
    // Ranges have no checksums; records are verified by their own.
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestChecksumCalculation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: requestTimeout,
      requestTimeout,
      // Without it the handler only warns, and waits for ever.
      throwOnRequestTimeout: true,
      // Longer than what ends a body that stalls (body.ts).
      socketTimeout: Math.max(requestTimeout, options.idleTimeoutMs ?? S3_DEFAULTS.idleTimeoutMs) + 1000,
      httpAgent: agent,
      // The tunnel's time is shorter than the request's, so that the error names the proxy.
      httpsAgent: new TunnelAgent(proxies, Math.ceil(requestTimeout * 0.9), agent),
    },
  }
  const client = new S3(config)
  const { requestHandler } = client.config
  requestHandler.handle = throughProxies(requestHandler.handle.bind(requestHandler), proxies)
  return client
}

const ANONYMOUS = {
  signer: { sign: async <Request>(request: Request) => request },
  credentials: { accessKeyId: '', secretAccessKey: '' },
}
