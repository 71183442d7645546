import DendroEngine
import DendroStorage
import DendroTree
import Synchronization

/// The writes that the program of a server that follows has made, and what its clients have asked for, until it is known
/// what has become of them.
///
/// They go to the leader in their order, as rows of requests, each with the name of this opening and a number, which the
/// leader puts into the log with the write. A write stands once it comes back in the log. If the epoch of the leader that
/// had it ends without it, it does not, and goes to the next one: the log of an epoch that has ended grows no more. What the
/// leader says of one that is not in the log counts once this server has all writes that the leader had then.
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
    /// How long a client waits for an answer to what a leader may have made.
    var patience = Duration.seconds(30)
    /// Of all, how many may be what clients ask for: their servers need the rest for what those leave.
    var requestCount = 9_000
    var requestByteCount = 24 << 20
    /// The writes of one row.
    var rowCount = 512
    var rowByteCount = 4 << 20
    /// The rows that the leader has at once: what comes meanwhile makes longer ones.
    var outstandingRowCount = 8
  }

  private struct State {
    /// In the order of their numbers.
    var waiting: [ForwardedWrite] = []
    /// Those that are in the log under the name and number of a client.
    var named: [WriteOrigin: [UInt64]] = [:]
    /// What the leader of this epoch has said that this server cannot show yet.
    var answers: [Answer] = []
    var epoch: Epoch?
    var byteCount = 0
    var lastNumber: UInt64 = 0
    /// The last of the writes that a row has, of which the answer is missing.
    var attempt: UInt64?
    /// Those that the leader has.
    var rows: [Row] = []
    var isOpen = false

    /// A row that was sent.
    struct Row {
      /// The first and the last one.
      let numbers: ClosedRange<UInt64>
      let way: Way
    }

    /// Whether some of a row are still waited for.
    func isOutstanding(_ row: Row) -> Bool {
      let index = firstIndex(from: row.numbers.lowerBound)
      return index < waiting.count && waiting[index].number <= row.numbers.upperBound
    }

    /// The first that has this number or a higher one.
    private func firstIndex(from number: UInt64) -> Int {
      var (low, high) = (0, waiting.count)
      while low < high {
        let middle = (low + high) / 2
        if waiting[middle].number < number { low = middle + 1 } else { high = middle }
      }
      return low
    }

    func index(of number: UInt64) -> Int? {
      let index = firstIndex(from: number)
      return index < waiting.count && waiting[index].number == number ? index : nil
    }

    mutating func remove(_ number: UInt64) -> ForwardedWrite? {
      guard let index = index(of: number) else { return nil }
      let write = waiting.remove(at: index)
      byteCount -= write.bytes.count
      named[write.origin]?.removeAll { $0 == number }
      if named[write.origin]?.isEmpty == true { named[write.origin] = nil }
      return write
    }

    mutating func takeAll() -> [ForwardedWrite] {
      defer {
        waiting = []
        named = [:]
        answers = []
        byteCount = 0
        attempt = nil
        rows = []
      }
      return waiting
    }
  }

  /// How a row goes to the leader, who gets all of an opening in the order of their numbers.
  enum Way: Hashable, Sendable {
    /// By the table of requests.
    case table
    case line
  }

  /// What the leader says of one.
  struct Answer: Sendable {
    let number: UInt64
    let answer: ForwardedAnswer
    /// The last write that the leader had then.
    let lsn: LogSequenceNumber
  }

  init(client: [UInt8], limits: Limits = Limits()) {
    self.client = client
    self.limits = limits
  }

  var hasWaiting: Bool { state.withLock { !$0.waiting.isEmpty } }

  /// Takes writes from now on, or takes none any more.
  func setOpen(_ isOpen: Bool) { state.withLock { $0.isOpen = isOpen } }

  /// What is longer no leader admits.
  private static let byteLimit = Sharing.writeByteLimit + (1 << 20)

  /// Whether it takes writes.
  var isOpen: Bool { state.withLock { $0.isOpen } }

  /// Takes a write.
  ///
  /// - Parameter origin: under which it will be in the log; nil: that of this opening.
  /// - Returns: false if it takes none, or too many wait.
  func add(
    _ content: ForwardedWrite.Content, origin: WriteOrigin? = nil,
    _ completion: @escaping SharedRequestCompletion
  ) -> Bool {
    let bytes = content.bytes
    guard bytes.count <= Self.byteLimit else {
      completion(
        .failed(.writeTooLarge(bytes: bytes.count, limit: Sharing.writeByteLimit)), nil)
      return true
    }
    return state.withLock { state in
      let (count, byteCount) =
        if case .request = content { (limits.requestCount, limits.requestByteCount) } else {
          (limits.count, limits.byteCount)
        }
      guard state.isOpen, state.waiting.count < count,
        state.byteCount + bytes.count <= byteCount
      else { return false }
      state.lastNumber += 1
      let number = state.lastNumber
      state.byteCount += bytes.count
      if let origin { state.named[origin, default: []].append(number) }
      state.waiting.append(
        ForwardedWrite(
          number: number, content: content, bytes: bytes,
          origin: origin ?? WriteOrigin(client: client, number: number), since: .now, epoch: nil,
          completion: completion))
      return true
    }
  }

  /// Takes a write of the program.
  func add(_ write: EncodedWrite, _ completion: @escaping Completion) -> Bool {
    guard write.origin == nil else { return false }
    return add(.write(write)) { outcome, _ in
      switch outcome {
      case .made(let lsn): completion(.success(lsn))
      case .answered, .stale:
        completion(.failure(.unavailable("the leader does not understand it")))
      case .failed(let error): completion(.failure(error))
      }
    }
  }

  // MARK: Outcomes

  /// The completion of a write that has come back in the log.
  func completion(of origin: WriteOrigin, in data: () -> Node) -> Completion? {
    let writes = state.withLock { state -> [ForwardedWrite] in
      if origin.client == client { return state.remove(origin.number).map { [$0] } ?? [] }
      return (state.named[origin] ?? []).compactMap { state.remove($0) }
    }
    if writes.isEmpty { return nil }
    let data = data()
    return { result in
      let lsn = try? result.get()
      for write in writes { write.end(.made(lsn ?? nil), data) }
    }
  }

  /// Notes what the leader of an epoch has said.
  func note(_ answers: [Answer], epoch: Int64) {
    state.withLock { state in
      guard state.epoch?.number == epoch else { return }
      state.answers += answers.filter { state.index(of: $0.number) != nil }
    }
  }

  /// Ends what the leader has answered, as far as this server has the writes that the leader had.
  func endAnswered(upTo lsn: LogSequenceNumber) {
    let ended = state.withLock { state -> [(ForwardedWrite, ForwardedAnswer)] in
      if state.answers.isEmpty { return [] }
      let due = state.answers.filter { $0.lsn <= lsn }
      state.answers.removeAll { $0.lsn <= lsn }
      return due.compactMap { due in state.remove(due.number).map { ($0, due.answer) } }
    }
    for (write, answer) in ended { write.end(answer.outcome(of: write.content), nil) }
  }

  /// Has the writes of earlier epochs sent again: all of the log before this one was taken.
  ///
  /// - Parameter token: that of the epoch.
  func begin(epoch: Int64, token: [UInt8] = []) {
    let epoch = Epoch(number: epoch, token: token)
    state.withLock { state in
      if state.epoch == epoch { return }
      state.epoch = epoch
      // They may rest on writes that do not stand.
      state.answers = []
      state.rows = []
      // What was left for earlier leaders the new one does not take.
      state.attempt = nil
      for index in state.waiting.indices {
        state.waiting[index].wasOnLostLine = false
        state.waiting[index].epoch = nil
      }
    }
  }

  /// Has what was sent over a line sent again, since the line has ended. The leader may have it: it takes no number twice.
  func lineLost() {
    state.withLock { state in
      for row in state.rows where row.way == .line {
        for index in state.waiting.indices
        where row.numbers.contains(state.waiting[index].number) {
          state.waiting[index].epoch = nil
          state.waiting[index].wasOnLostLine = true
        }
      }
      state.rows.removeAll { $0.way == .line }
    }
  }

  /// The next row, if there is one: writes that no leader has. They have to be sent as one row until it is known that
  /// PostgreSQL has it, or the line has taken it.
  ///
  /// - Parameter way: how it will be sent. There is none before all that went the other way is answered or comes again, since
  ///   the leader might see that later.
  func nextRow(by way: Way = .table) -> ArraySlice<ForwardedWrite>? {
    state.withLock { state in
      guard let first = state.waiting.firstIndex(where: { $0.epoch == nil }) else { return nil }
      state.rows = state.rows.filter(state.isOutstanding)
      if way == .line && state.attempt != nil || state.rows.contains(where: { $0.way != way }) {
        return nil
      }
      guard state.attempt != nil || state.rows.count < limits.outstandingRowCount else {
        return nil
      }
      // All of the row was made, as the log has shown.
      if let attempt = state.attempt, state.waiting[first].number > attempt { state.attempt = nil }
      var end = first
      var byteCount = 0
      while end < state.waiting.count, state.waiting[end].epoch == nil {
        // The leader counts on from the first number.
        if end > first, state.waiting[end].number != state.waiting[end - 1].number + 1 { break }
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
      state.attempt = max(state.attempt ?? 0, state.waiting[end - 1].number)
      return state.waiting[first..<end]
    }
  }

  /// Whether something that went that way is waited for.
  func hasRows(by way: Way) -> Bool {
    state.withLock { state in
      state.rows.contains { $0.way == way && state.isOutstanding($0) }
        || way == .table && state.attempt != nil
    }
  }

  /// Notes that PostgreSQL has the row for the leader of an epoch, or the line to that leader.
  func sent(_ row: ArraySlice<ForwardedWrite>, epoch: Int64, by way: Way = .table) {
    let numbers = Set(row.map(\.number))
    state.withLock { state in
      if let last = row.last, last.number >= state.attempt ?? 0 { state.attempt = nil }
      if let first = row.first, let last = row.last {
        state.rows.append(State.Row(numbers: first.number...last.number, way: way))
      }
      for index in state.waiting.indices where numbers.contains(state.waiting[index].number) {
        state.waiting[index].epoch = epoch
      }
    }
  }

  /// Notes that the line has not taken the row that comes next: no leader has it.
  func notSent() { state.withLock { $0.attempt = nil } }

  /// Whether a row was left in the table of which it is not known that PostgreSQL has it.
  var hasAttempt: Bool { state.withLock { $0.attempt != nil } }

  /// Refuses what has waited too long for a leader.
  func expire() {
    let now = ContinuousClock.now
    let expired = state.withLock { state -> [ForwardedWrite] in
      // A row of which the answer is missing may be there.
      let attempt = state.attempt ?? 0
      let expired = state.waiting.filter {
        $0.epoch == nil && !$0.wasOnLostLine && $0.number > attempt && !$0.isPatient
          && now - $0.since > limits.wait
      }
      for write in expired { _ = state.remove(write.number) }
      return expired
    }
    for write in expired {
      write.end(.failed(.unavailable("no server has taken the write for \(limits.wait)")), nil)
    }
  }

  /// Tells clients that what they have asked for may be made or not, once that is not known for too long. It stays on its
  /// way.
  func giveUp() {
    let now = ContinuousClock.now
    let late = state.withLock { state -> [ForwardedWrite] in
      var late: [ForwardedWrite] = []
      for index in state.waiting.indices {
        let write = state.waiting[index]
        // They came one after the other.
        if now - write.since <= limits.patience { break }
        guard case .request = write.content, !write.isPatient, !write.isGivenUp else { continue }
        state.waiting[index].isGivenUp = true
        late.append(write)
      }
      return late
    }
    for write in late {
      write.completion(.failed(.undecided("no answer has come for \(limits.patience)")), nil)
    }
  }

  /// Gives all that waits to this server's own engine, which leads now. It goes on to take requests, which are made behind
  /// these, until there are none (`takeMore`).
  func takeAll() -> [ForwardedWrite] { state.withLock { $0.takeAll() } }

  /// Gives what has come since. Once there is nothing, no more is taken.
  func takeMore() -> [ForwardedWrite] {
    state.withLock { state in
      if state.waiting.isEmpty { state.isOpen = false }
      return state.takeAll()
    }
  }

  /// Ends all that waits, since nothing more is taken from the log.
  func close(_ reason: String) {
    let (attempt, waiting) = state.withLock { state in
      state.isOpen = false
      return (state.attempt, state.takeAll())
    }
    for write in waiting {
      let mayStand =
        write.epoch != nil || write.wasOnLostLine || attempt.map { write.number <= $0 } ?? false
      write.end(.failed(mayStand ? .undecided(reason) : .unavailable(reason)), nil)
    }
  }
}
