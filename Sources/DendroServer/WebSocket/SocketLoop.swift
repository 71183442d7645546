import CDendroWSLay
import Dendro
import DendroPlatform
import DendroTree
import Synchronization

/// One thread that waits for many sockets, and calls those that can be read or written.
///
/// Unchecked: `sockets` is used on the loop's thread only; what other threads hand over has a lock.
final class SocketLoop: @unchecked Sendable {
  /// What the loop serves. All calls are made on its thread.
  protocol Client: AnyObject, Sendable {
    var descriptor: Int32 { get }
    /// The socket can be read or written, or another thread has called `wake`.
    ///
    /// - Parameter isReadable: whether it can be read, or its peer is gone. The loop reports a lost peer to a client that
    ///   waits for nothing too: once, and again when the client waits for something.
    /// - Returns: what to wait for now; nil if the socket was closed.
    func serve(isReadable: Bool) -> Interest?
    /// Goes on with work for which the client has asked for a turn.
    ///
    /// - Returns: as `serve`.
    func takeTurn() -> Interest?
    /// Looks at the client about once a second.
    ///
    /// - Returns: whether it is to be served.
    func tick(_ now: ContinuousClock.Instant) -> Bool
    /// The loop ends: closes the socket.
    func end()
  }

  struct Interest: OptionSet {
    let rawValue: UInt32
    static let reading = Interest(rawValue: dendro_readable)
    static let writing = Interest(rawValue: dendro_writable)
    /// The client has more work than fits into one turn. The loop gives it another turn after it has served every socket
    /// that is ready. So clients with long work, however many, delay another client by one turn at most.
    static let turn = Interest(rawValue: 1 << 16)
    /// What the system waits for.
    fileprivate var events: UInt32 { intersection([.reading, .writing]).rawValue }
  }

  private let poll: Int32
  private let waker: Int32
  private let pending = Mutex(Pending())
  private let count = Atomic<Int>(0)
  private var sockets: [Int32: Socket] = [:]
  /// Those that wait for a turn, each once. Some may have been closed, or want no turn any more.
  private var turns = Queue<any Client>()
  /// The memory of clients' send buffers between their turns: those that wait need none. Under a lock, since clients that come
  /// while the loop ends are ended on the threads that bring them.
  private let spare = Mutex<[UInt8]>([])

  private struct Socket {
    let client: any Client
    var interest: Interest
    /// Whether it stands in `turns`.
    var isQueued = false
  }

  private struct Pending {
    var added: [any Client] = []
    var woken: [any Client] = []
    var isSignalled = false
    var hasTick = false
    var isEnding = false
    var hasEnded = false
  }

  /// - Throws: if the system has no descriptor for it.
  init() throws(DatabaseServerError) {
    let poll = dendro_poll_open()
    guard poll >= 0 else { throw Self.refusal("wait for sockets", errno) }
    let waker = dendro_waker_open()
    guard waker >= 0, dendro_poll_add(poll, waker, dendro_readable) == 0 else {
      let code = errno
      if waker >= 0 { close(waker) }
      close(poll)
      throw Self.refusal("wait for sockets", code)
    }
    self.poll = poll
    self.waker = waker
  }

  private static func refusal(_ what: String, _ code: Int32) -> DatabaseServerError {
    DatabaseServerError("cannot \(what): \(String(cString: strerror(code)))")
  }

  deinit {
    close(poll)
    close(waker)
  }

  /// Starts the thread, which holds the loop until it ends.
  ///
  /// - Throws: if the system has no thread for it.
  func start() throws(DatabaseServerError) {
    let loop = Unmanaged.passRetained(self)
    var thread = pthread_t()
    let result = pthread_create(
      &thread, nil,
      { loop in
        guard let loop else { return nil }
        Unmanaged<SocketLoop>.fromOpaque(loop).takeRetainedValue().run()
        return nil
      }, loop.toOpaque())
    guard result == 0 else {
      loop.release()
      throw Self.refusal("start a thread for sockets", result)
    }
    pthread_detach(thread)
  }

  /// The sockets that the loop serves or is about to.
  var clientCount: Int { count.load(ordering: .relaxed) }

  // MARK: From other threads

  /// Takes over a socket.
  func add(_ client: any Client) {
    count.wrappingAdd(1, ordering: .relaxed)
    let hasEnded = signal { pending in
      if !pending.hasEnded { pending.added.append(client) }
      return pending.hasEnded
    }
    if hasEnded {
      client.end()
      count.wrappingSubtract(1, ordering: .relaxed)
    }
  }

  /// Serves the client soon.
  func wake(_ client: any Client) {
    _ = signal { pending in
      if !pending.hasEnded { pending.woken.append(client) }
      return pending.hasEnded
    }
  }

  /// Looks at all clients.
  func tick() {
    _ = signal {
      $0.hasTick = true; return $0.hasEnded
    }
  }

  /// Closes all sockets, and ends the thread.
  func end() {
    _ = signal {
      $0.isEnding = true; return $0.hasEnded
    }
  }

  private func signal(_ body: (inout Pending) -> Bool) -> Bool {
    let (result, signals) = pending.withLock { pending in
      let result = body(&pending)
      defer { pending.isSignalled = true }
      return (result, !pending.isSignalled)
    }
    if signals {
      var one: UInt64 = 1
      _ = write(waker, &one, 8)
    }
    return result
  }

  // MARK: The thread

  private func run() {
    var ready = [Int32](repeating: 0, count: 64)
    var events = [UInt32](repeating: 0, count: 64)
    while true {
      let count = dendro_poll_wait(poll, &ready, &events, 64, turns.isEmpty ? 1 : 0)
      if count < 0, errno != EINTR { break }
      for (descriptor, event) in zip(ready, events).prefix(max(0, Int(count))) {
        if descriptor == waker {
          if handlePending() { return }
        } else if let socket = sockets[descriptor] {
          // A client that was woken meanwhile may wait for something else now.
          let isAwaited = socket.interest.contains(.reading)
          let isReadable = event & dendro_lost != 0 || isAwaited && event & dendro_readable != 0
          serve(socket.client, isReadable: isReadable)
        }
      }
      giveTurn()
    }
  }

  private func giveTurn() {
    guard let client = turns.popFirst(), var socket = sockets[client.descriptor],
      socket.client === client
    else { return }
    let isWanted = socket.interest.remove(.turn) != nil
    socket.isQueued = false
    sockets[client.descriptor] = socket
    if isWanted { wait(client, client.takeTurn()) }
  }

  /// - Returns: whether the loop has ended.
  private func handlePending() -> Bool {
    var value: UInt64 = 0
    _ = read(waker, &value, 8)
    var new = Pending()
    pending.withLock { pending in
      swap(&new, &pending)
      pending.hasEnded = new.isEnding
    }
    for client in new.added {
      let interest = Interest.reading
      guard dendro_poll_add(poll, client.descriptor, interest.events) == 0 else {
        client.end()
        count.wrappingSubtract(1, ordering: .relaxed)
        continue
      }
      sockets[client.descriptor] = Socket(client: client, interest: interest)
      serve(client, isReadable: true)
    }
    for client in new.woken where sockets[client.descriptor]?.client === client {
      serve(client, isReadable: false)
    }
    if new.hasTick {
      let now = ContinuousClock.now
      for client in sockets.values.map(\.client) where client.tick(now) {
        serve(client, isReadable: false)
      }
    }
    guard new.isEnding else { return false }
    for socket in sockets.values { socket.client.end() }
    count.wrappingSubtract(sockets.count, ordering: .relaxed)
    sockets = [:]
    turns.removeAll()
    return true
  }

  /// Lends memory to a client's buffer for its turn.
  func lend(to buffer: inout SendBuffer) { spare.withLock { buffer.borrow(&$0) } }

  /// Takes the memory of a buffer that is empty.
  func takeBack(from buffer: inout SendBuffer) { spare.withLock { buffer.giveBack(&$0) } }

  /// Waits for the socket no more. Called on the loop's thread, before the socket is closed.
  func forget(_ descriptor: Int32) { dendro_poll_remove(poll, descriptor) }

  private func serve(_ client: any Client, isReadable: Bool) {
    wait(client, client.serve(isReadable: isReadable))
  }

  private func wait(_ client: any Client, _ interest: Interest?) {
    let descriptor = client.descriptor
    guard let interest else {
      sockets[descriptor] = nil
      count.wrappingSubtract(1, ordering: .relaxed)
      return
    }
    guard var socket = sockets[descriptor], socket.interest != interest else { return }
    let isChanged = socket.interest.events != interest.events
    socket.interest = interest
    if interest.contains(.turn), !socket.isQueued {
      socket.isQueued = true
      turns.append(client)
    }
    sockets[descriptor] = socket
    if isChanged { dendro_poll_change(poll, descriptor, interest.events) }
  }
}

extension SocketLoop.Client {
  /// There is nothing to look at.
  func tick(_ now: ContinuousClock.Instant) -> Bool { false }
  /// No work is long.
  func takeTurn() -> SocketLoop.Interest? { serve(isReadable: false) }
}
