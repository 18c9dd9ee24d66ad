/** What requests a command made, in words. */

import type { Traffic } from '../../index.js'
import { bytesText, countText } from './number.js'

/** For `--stats`; nothing where no request was made. */
export function trafficText({
  listRequests,
  getRequests,
  receivedBytes,
  retries,
}: Readonly<Traffic>): readonly string[] {
  if (listRequests + getRequests === 0) return []
  return [
    `list requests ${countText(listRequests)}`,
    `get requests ${countText(getRequests)}`,
    `retries ${countText(retries)}`,
    `bytes received ${countText(receivedBytes)} (${bytesText(receivedBytes)})`,
  ]
}
