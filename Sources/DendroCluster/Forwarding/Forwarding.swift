import DendroEngine
import DendroStorage
import DendroTree
import Synchronization

/// The writes that the program of a server that follows has made, until it is known whether they stand.
///
/// They go to the leader in their order, as rows of requests, each with the name of this opening and a number, which the
/// leader puts into the log with the write. A write stands once it comes back in the log. If the epoch of the leader that
/// had it ends without it, it does not, and goes to the next one: the log of an epoch that has ended grows no more.
/// A leader ignores a number that it has seen of an opening. So each write is made once, also if it is sent to several leaders
/// or sent twice.
final class Forwarding: Sendable {
  /// Names this opening of the server in the log.
  let client: [UInt8]
  private let limits: Limits
  private let state = Mutex(State())

  struct Limits: Sendable {
    var count = 10_000
    var byteCount = 32 << 20
    /// How long a write waits for a leader.
    var wait = Duration.seconds(10)
    /// The writes of one row.
    var rowCount = 512
    var rowByteCount = 4 << 20
  }

  private struct State {
    /// In the order of their numbers.
    var waiting: [ForwardedWrite] = []
    var byteCount = 0
    var lastNumber: UInt64 = 0
    /// The last of the writes that a row has, of which the answer is missing.
    var attempt: UInt64?
    var isOpen = false
  }

  init(_ server: ServerID, _ randomness: any Randomness, limits: Limits = Limits()) {
    client = server.bytes + randomness.bytes(8)
    self.limits = limits
  }

  var hasWaiting: Bool { state.withLock { !$0.waiting.isEmpty } }

  /// Takes writes from now on, or takes none any more.
  func setOpen(_ isOpen: Bool) { state.withLock { $0.isOpen = isOpen } }

  /// Takes a write.
  ///
  /// - Returns: false if it takes none, or too many wait.
  func add(_ write: EncodedWrite, _ completion: @escaping Completion) -> Bool {
    guard write.system == nil, write.origin == nil else { return false }
    let bytes = write.keptBytes
    return state.withLock { state in
      guard state.isOpen, state.waiting.count < limits.count,
        state.byteCount + bytes.count <= limits.byteCount
      else { return false }
      state.lastNumber += 1
      state.byteCount += bytes.count
      state.waiting.append(
        ForwardedWrite(
          number: state.lastNumber, write: write, bytes: bytes, since: .now, epoch: nil,
          completion: completion))
      return true
    }
  }

  // MARK: Outcomes

  /// The completion of a write that has come back in the log.
  func completion(of origin: WriteOrigin) -> Completion? {
    guard origin.client == client else { return nil }
    return remove(origin.number)?.completion
  }

  private func remove(_ number: UInt64) -> ForwardedWrite? {
    state.withLock { state in
      guard let index = state.waiting.firstIndex(where: { $0.number == number }) else { return nil }
      let write = state.waiting.remove(at: index)
      state.byteCount -= write.bytes.count
      return write
    }
  }

  /// Ends a write of which the leader has said why it has no number.
  func end(_ number: UInt64, _ answer: ForwardedAnswer) {
    guard let write = remove(number) else { return }
    write.completion(answer.result(of: write.write))
  }

  /// Has the writes of earlier epochs sent again: all of the log before this one was taken.
  func begin(epoch: Int64) {
    state.withLock { state in
      var isChanged = false
      for index in state.waiting.indices {
        guard let sent = state.waiting[index].epoch, sent != epoch else { continue }
        state.waiting[index].epoch = nil
        isChanged = true
      }
      if isChanged { state.attempt = nil }
    }
  }

  /// The next row, if there is one: writes that no leader has. They have to be sent as one row until it is known that
  /// PostgreSQL has it.
  func nextRow() -> ArraySlice<ForwardedWrite>? {
    state.withLock { state in
      guard let first = state.waiting.firstIndex(where: { $0.epoch == nil }) else { return nil }
      var end = first
      var byteCount = 0
      while end < state.waiting.count, state.waiting[end].epoch == nil {
        if let attempt = state.attempt {
          if state.waiting[end].number > attempt { break }
        } else if end > first,
          end - first >= limits.rowCount
            || byteCount + state.waiting[end].bytes.count > limits.rowByteCount
        {
          break
        }
        byteCount += state.waiting[end].bytes.count
        end += 1
      }
      guard end > first else { return nil }
      state.attempt = state.waiting[end - 1].number
      return state.waiting[first..<end]
    }
  }

  /// Notes that PostgreSQL has the row for the leader of an epoch.
  func sent(_ row: ArraySlice<ForwardedWrite>, epoch: Int64) {
    let numbers = Set(row.map(\.number))
    state.withLock { state in
      state.attempt = nil
      for index in state.waiting.indices where numbers.contains(state.waiting[index].number) {
        state.waiting[index].epoch = epoch
      }
    }
  }

  /// Refuses what has waited too long for a leader.
  func expire() {
    let now = ContinuousClock.now
    let expired = state.withLock { state -> [ForwardedWrite] in
      // A row of which the answer is missing may be there.
      guard state.attempt == nil else { return [] }
      let expired = state.waiting.filter { $0.epoch == nil && now - $0.since > limits.wait }
      state.waiting.removeAll { $0.epoch == nil && now - $0.since > limits.wait }
      state.byteCount -= expired.reduce(0) { $0 + $1.bytes.count }
      return expired
    }
    for write in expired {
      write.completion(.failure(.unavailable("no server has led for \(limits.wait)")))
    }
  }

  /// Gives all that waits to this server's own engine, which leads now. No more is taken.
  func takeAll() -> [ForwardedWrite] {
    state.withLock { state in
      defer {
        state.isOpen = false
        state.waiting = []
        state.byteCount = 0
        state.attempt = nil
      }
      return state.waiting
    }
  }

  /// Ends all that waits, since nothing more is taken from the log.
  func close(_ reason: String) {
    let attempt = state.withLock { $0.attempt }
    for write in takeAll() {
      let mayStand = write.epoch != nil || attempt.map { write.number <= $0 } ?? false
      write.completion(.failure(mayStand ? .undecided(reason) : .unavailable(reason)))
    }
  }
}
