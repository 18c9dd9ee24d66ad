/** A link to a server that takes time: `node slow-link.mjs HOST:PORT LATENCY_MS MB_PER_SECOND`. Says its own port. */
import { connect, createServer } from 'node:net'

const [target, latency, speed] = process.argv.slice(2)
const [host, port] = target.split(':')
const delayMs = Number(latency) / 2
const bytesPerMs = Number(speed) * 1000
/** More than that is not on the way. */
const MAX_MS = 100

/** Every piece comes so much later, in order, and a connection gets so many bytes a second. */
function pass(from, to) {
  const onTheWay = []
  let sentAt = 0
  const arrive = () => {
    const now = performance.now()
    while (onTheWay.length > 0 && onTheWay[0].at <= now) to.write(onTheWay.shift().piece)
    if (onTheWay.length > 0) setTimeout(arrive, onTheWay[0].at - now)
    else if (from.readableEnded) to.end()
    if (sentAt - now < MAX_MS) from.resume()
  }
  from.on('data', piece => {
    const now = performance.now()
    sentAt = Math.max(sentAt, now) + piece.length / bytesPerMs
    onTheWay.push({ piece, at: sentAt + delayMs })
    if (onTheWay.length === 1) setTimeout(arrive, sentAt + delayMs - now)
    if (sentAt - now >= MAX_MS) from.pause()
  })
  from.on('end', () => onTheWay.length === 0 && to.end())
  from.on('error', () => to.destroy())
}

const server = createServer({ noDelay: true }, near => {
  const far = connect({ host, port: Number(port), noDelay: true })
  pass(near, far)
  pass(far, near)
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
// Ends with whoever started it.
process.stdin.resume().on('end', () => process.exit())
