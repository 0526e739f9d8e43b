/** The open connections of a server, so that it can end without waiting for callers that keep theirs open. */
export class Connections {
  /** How many answers are running on each. */
  #running = new Map()
  #isClosing = false

  /** @param {import('node:http').Server} server */
  constructor(server) {
    server.on('connection', (socket) => {
      this.#running.set(socket, 0)
      socket.once('close', () => this.#running.delete(socket))
    })
  }

  /**
   * Counts an answer as running until it is out or its caller has gone.
   * @param {import('node:http').IncomingMessage} request
   * @param {import('node:http').ServerResponse} response
   */
  track({ socket }, response) {
    if (this.#isClosing) response.shouldKeepAlive = false
    this.#add(socket, 1)
    response.once('close', () => this.#add(socket, -1))
  }

  /** Closes those on which nothing runs, also those on which nothing was asked yet; the others once they are done. */
  close() {
    this.#isClosing = true
    for (const [socket, running] of this.#running) if (running === 0) socket.destroy()
  }

  #add(socket, change) {
    // An answer may end after its connection.
    if (!this.#running.has(socket)) return
    const running = this.#running.get(socket) + change
    this.#running.set(socket, running)
    if (this.#isClosing && running === 0) socket.end()
  }
}
