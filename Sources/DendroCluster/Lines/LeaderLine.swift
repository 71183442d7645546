import DendroEngine
import DendroStorage
import DendroTree
import Foundation
import Synchronization

/// The line of a server that follows to the one that leads.
///
/// What comes over it waits for the node's thread, which is woken. Batches that come have been committed: they are taken like
/// those that PostgreSQL is asked for. If one is missing, the thread asks PostgreSQL.
final class LeaderLine: Sendable {
  private let lines: ServerLines
  private let settings: ClusterSettings
  /// Called when there is something for the node's thread.
  private let changed: @Sendable () -> Void
  private let state = Mutex(State())

  /// Batches that wait, in bytes: what is more is asked for in PostgreSQL.
  private static let waitingByteCountMax = 32 << 20
  /// Between attempts to open a line: at first, and at most.
  private static let pauses = (Duration.milliseconds(200), Duration.seconds(15))

  private struct State {
    /// Of the leader of this epoch.
    var epoch: Epoch?
    var line: Line?
    var isWelcome = false
    /// Whether a line is being opened.
    var isCalling = false
    var pause = LeaderLine.pauses.0
    var nextCall = ContinuousClock.now
    var batches: [LoggedBatch] = []
    var batchByteCount = 0
    /// Whether PostgreSQL has batches that are not among these.
    var hasGap = false
    var answers: [Forwarding.Answer] = []
    var answerCount: UInt64 = 0
    /// Whether a line has ended since that was asked for.
    var wasLost = false
    /// Why there is no line, if that was not asked for yet; of each epoch once.
    var failure: String?
    var hasFailed = false

    mutating func noteFailure(_ text: String?) {
      guard let text, !hasFailed else { return }
      hasFailed = true
      failure = text
    }

    mutating func drop() {
      line = nil
      isWelcome = false
      batches = []
      batchByteCount = 0
      answers = []
      answerCount = 0
      hasGap = false
      wasLost = true
    }
  }

  private static let isRefused = "the line has ended before the leader has welcomed this server"

  init(_ lines: ServerLines, _ settings: ClusterSettings, changed: @escaping @Sendable () -> Void) {
    self.lines = lines
    self.settings = settings
    self.changed = changed
  }

  // MARK: The node's thread

  /// Whether a leader sends its batches.
  var isOpen: Bool { state.withLock { $0.isWelcome } }

  /// Whether the leader of an epoch sends its batches.
  func isOpen(_ epoch: Epoch) -> Bool { state.withLock { $0.isWelcome && $0.epoch == epoch } }

  /// Leaves the leaders of other epochs.
  ///
  /// - Parameter epoch: of the leader that there is.
  /// - Returns: whether a line is to be opened now.
  func wantsCall(_ epoch: Epoch) -> Bool {
    let old = state.withLock { state -> Line? in
      if state.epoch == epoch { return nil }
      defer { state.drop() }
      state.epoch = epoch
      state.pause = Self.pauses.0
      state.nextCall = .now
      state.failure = nil
      state.hasFailed = false
      return state.line
    }
    old?.close()
    return state.withLock { $0.line == nil && !$0.isCalling && $0.nextCall <= .now }
  }

  /// Opens a line, on another thread. To be called if one is wanted.
  ///
  /// - Parameter address: of the leader; nil if it takes none.
  func call(_ address: LineAddress?, _ epoch: Epoch) {
    state.withLock { state in
      state.isCalling = address != nil
      state.nextCall = .now + state.pause
      state.pause = min(state.pause * 2, Self.pauses.1)
    }
    guard let address else { return }
    let hello = LineMessage.hello(
      version: LineMessage.version, namespace: settings.namespace, client: settings.client,
      epoch: epoch)
    let thread = Thread { [weak self, lines] in
      guard let self else { return }
      var line: Line?
      var failure: String?
      do throws(LineSocket.Failure) {
        line = try lines.call(address, hello: hello, self)
      } catch {
        failure = "\(error)"
      }
      let isWanted = state.withLock { state in
        state.isCalling = false
        guard state.epoch == epoch else { return false }
        state.noteFailure(failure)
        // The answer to its hello may have come already.
        guard let line, state.line.map({ $0 === line }) ?? true, !line.hasEnded else {
          return false
        }
        state.line = line
        return true
      }
      if !isWanted { line?.close() }
    }
    thread.name = "dendro-call"
    thread.start()
  }

  /// Why there is no line to the leader, once for each epoch.
  func takeFailure() -> String? {
    state.withLock { state in
      defer { state.failure = nil }
      return state.failure
    }
  }

  /// Ends the line, since this server leads, or takes no part any more.
  func close() {
    let line = state.withLock { state in
      defer {
        state.drop()
        state.epoch = nil
      }
      return state.line
    }
    line?.close()
  }

  /// What has come.
  struct News {
    /// In which the leader has said it.
    var epoch: Epoch?
    var batches: [LoggedBatch] = []
    var answers: [Forwarding.Answer] = []
    /// Whether PostgreSQL has batches that have not come.
    var hasGap = false
    /// Whether a line has ended: what was sent over it and has no answer may have been made or not.
    var wasLost = false
  }

  func takeNews() -> News {
    let (news, noted, line) = state.withLock { state in
      defer {
        state.batches = []
        state.batchByteCount = 0
        state.answers = []
        state.hasGap = false
        state.wasLost = false
      }
      let news = News(
        epoch: state.epoch, batches: state.batches, answers: state.answers, hasGap: state.hasGap,
        wasLost: state.wasLost)
      return (news, state.answerCount, state.line)
    }
    if !news.answers.isEmpty { line?.send(.noted(noted)) }
    return news
  }

  /// Sends writes to the leader of an epoch.
  ///
  /// - Returns: false if there is no line to it, or if one has ended since the news were taken: what was sent over that comes
  ///   first.
  func send(_ row: ArraySlice<ForwardedWrite>, _ epoch: Epoch) -> Bool {
    guard let first = row.first,
      let line = state.withLock({ state in
        state.isWelcome && state.epoch == epoch && !state.wasLost ? state.line : nil
      })
    else { return false }
    return line.send(
      .request(number: first.number, count: Int64(row.count), body: RequestBody.encode(row)))
  }
}

extension LeaderLine: Line.Handler {
  func take(_ message: LineMessage, from line: Line) -> Bool {
    let isMeant = state.withLock { state in
      if case .welcome(let epoch) = message, state.epoch == epoch, state.line == nil {
        state.line = line
      }
      guard state.line === line else { return false }
      switch message {
      case .welcome(let epoch):
        guard state.epoch == epoch else { return false }
        state.isWelcome = true
        state.pause = Self.pauses.0
        // Those before are in PostgreSQL.
        state.hasGap = true
      case .batch(let batch):
        guard state.isWelcome else { return false }
        if state.batchByteCount + batch.body.count > Self.waitingByteCountMax {
          state.batches = []
          state.batchByteCount = 0
          state.hasGap = true
        } else {
          state.batches.append(batch)
          state.batchByteCount += batch.body.count
        }
      case .answers(let answers):
        state.answers += answers
        state.answerCount += UInt64(answers.count)
      default: return false
      }
      return true
    }
    changed()
    return isMeant
  }

  func lineEnded(_ line: Line) {
    state.withLock { state in
      if !state.isWelcome { state.noteFailure(Self.isRefused) }
      if state.line === line { state.drop() }
    }
    changed()
  }
}
