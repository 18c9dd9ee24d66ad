/** Changes of a server's trials. A browser opens at most six connections to a server for all tabs together, so one tab listens for all. */

/** The server's news of a trial. */
export interface Change {
  readonly id: string
  readonly version: number
  readonly steps: number
  readonly isEnded: boolean
  /** True if nothing can change any more. */
  readonly isOver: boolean
}

/** A message between tabs. */
type Message = { readonly change: Change } | { readonly isSilent: true } | { readonly isNew: true }

/** Listens to changes of trials. @param onSilence called when the server does not answer; the browser reconnects by itself */
export function listen(ids: readonly string[], onChange: (change: Change) => void, onSilence: () => void): void {
  const channel = new BroadcastChannel('trialscan')
  const latest = new Map<string, Change>()
  const learn = (message: Message) => {
    if ('isSilent' in message) onSilence()
    if (!('change' in message)) return
    latest.set(message.change.id, message.change)
    if (ids.includes(message.change.id)) onChange(message.change)
  }
  const tell = (message: Message) => {
    channel.postMessage(message)
    learn(message)
  }
  const connect = () => {
    const events = new EventSource('/api/events')
    events.addEventListener('change', event => {
      tell({ change: JSON.parse((event as MessageEvent<string>).data) as Change })
      // Without locks between tabs, each tab listens for itself, and stops as soon as it can.
      if (navigator.locks === undefined && ids.every(id => latest.get(id)?.isOver)) events.close()
    })
    events.addEventListener('error', () => tell({ isSilent: true }))
    channel.addEventListener('message', ({ data }: MessageEvent<Message>) => {
      if ('isNew' in data) for (const change of latest.values()) channel.postMessage({ change } satisfies Message)
    })
  }
  channel.addEventListener('message', ({ data }: MessageEvent<Message>) => learn(data))
  if (navigator.locks === undefined) {
    connect()
    return
  }
  // The lock is held until the tab closes; then the next tab takes it.
  void navigator.locks.request('trialscan-events', () => {
    connect()
    return new Promise(() => {})
  })
  channel.postMessage({ isNew: true } satisfies Message)
}
