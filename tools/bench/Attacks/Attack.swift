/// What hostile clients of one kind do, all at once.
struct Attack: Sendable {
  let name: String
  let clientCount: Int
  /// How many addresses they have together.
  var addressCount = 100
  /// Seconds from one message of a client to its next.
  var pause = 0.05
  /// Whether the clients read what they get.
  var reads = true
  /// Whether it is meant for a server that lets everybody do everything.
  var needsOpenServer = false
  /// What a client sends, by its number and that of the message, from 0 on each connection; nil: it leaves, and
  /// comes again.
  let message: @Sendable (_ client: Int, _ number: Int) -> [UInt8]?

  /// The same with fewer clients.
  func scaled(_ clientCount: Int) -> Attack {
    Attack(
      name: name, clientCount: clientCount, addressCount: addressCount, pause: pause, reads: reads,
      message: message)
  }
}
