import DendroPlatform

/// One client of an attack. It waits for nothing; once the server has ended its connection, it comes again a moment later.
struct HostileClient {
  private let attack: Attack
  private let number: Int
  private let port: UInt16
  private var connection: LoadConnection?
  private var messageNumber = 0
  private var unsent: ArraySlice<UInt8> = []
  /// When it sends its next message, or comes again.
  private var due: Double
  private(set) var record = AttackRecord()
  /// POLLRDHUP, which Glibc's module does not show.
  private static let peerHasEnded: Int32 = 0x2000

  init(_ attack: Attack, _ number: Int, port: UInt16) {
    self.attack = attack
    self.number = number
    self.port = port
    // Not all of them at the same moment.
    due = min(attack.pause, 1) * Double(number) / Double(attack.clientCount)
  }

  /// What it waits for.
  var waitingFor: pollfd {
    var events = Self.peerHasEnded
    if attack.reads { events |= Int32(POLLIN) }
    if !unsent.isEmpty { events |= Int32(POLLOUT) }
    return pollfd(fd: connection?.descriptor ?? -1, events: Int16(events), revents: 0)
  }

  /// - Parameter now: seconds since the attack began.
  mutating func act(_ events: Int16, at now: Double, _ buffer: UnsafeMutableRawBufferPointer) {
    if events != 0 { receive(Int32(events), now, buffer) }
    if connection == nil, now >= due {
      let address =
        "127.1.\(number % attack.addressCount / 250).\(number % attack.addressCount % 250 + 1)"
      connection = try? LoadConnection(port: port, from: address, waits: false)
      messageNumber = 0
      if connection == nil { due = now + 1 } else { record.connectionCount += 1 }
    }
    guard let connection else { return }
    if unsent.isEmpty, now >= due {
      guard let message = attack.message(number, messageNumber) else { return leave(at: now) }
      unsent = message[...]
      messageNumber += 1
      due = now + attack.pause
      if !message.isEmpty { record.messageCount += 1 }
    }
    if !unsent.isEmpty {
      let count = unsent.withUnsafeBytes {
        send(connection.descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      if count > 0 { unsent = unsent.dropFirst(count) }
    }
  }

  private mutating func receive(
    _ events: Int32, _ now: Double, _ buffer: UnsafeMutableRawBufferPointer
  ) {
    guard let connection else { return }
    var hasEnded = events & (Int32(POLLHUP) | Int32(POLLERR) | Self.peerHasEnded) != 0
    if attack.reads, events & Int32(POLLIN) != 0 {
      let count = recv(connection.descriptor, buffer.baseAddress, buffer.count, 0)
      // What came before the end is read first.
      hasEnded = count == 0 || count < 0 && errno != EAGAIN
    }
    if hasEnded {
      record.endCount += 1
      leave(at: now + max(attack.pause, 0.1))
    }
  }

  private mutating func leave(at time: Double) {
    connection = nil
    unsent = []
    due = time
  }
}

/// What hostile clients have done.
struct AttackRecord: Sendable {
  var connectionCount = 0
  var messageCount = 0
  /// Connections that the server has ended.
  var endCount = 0

  static func += (left: inout AttackRecord, right: AttackRecord) {
    left.connectionCount += right.connectionCount
    left.messageCount += right.messageCount
    left.endCount += right.endCount
  }
}
