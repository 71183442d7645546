import DendroEngine
import DendroStorage
import DendroTree
import Foundation
import Synchronization

/// A server's part in comparing all servers: it keeps the state behind each batch from the moment at which it is asked on,
/// and hashes the one that all servers are to hash.
///
/// The servers take writes each at its own pace, and none can show a state that it has left behind. So the asking goes in two
/// steps: once every server has said that it keeps states, the write is named, the last one in PostgreSQL at that moment. It
/// is the end of a batch that none of them had passed before. States share what did not change between them, so that keeping
/// some seconds of them costs what was written meanwhile.
final class Verifier: Sendable {
  private let state = Mutex(State())

  /// For so long states are kept. A command that was ended leaves its row.
  private static let patience = Duration.seconds(30)
  /// So many are kept.
  private static let stateCountMax = 1 << 14

  private struct State {
    /// That which was seen last; nil if there was none.
    var request: VerificationRequest?
    var began = ContinuousClock.now
    var keeps = false
    var states: [LogSequenceNumber: TreeRoots] = [:]
    /// Of `states`, in their order.
    var order: [LogSequenceNumber] = []
    var answer: VerificationAnswer?

    mutating func end() {
      keeps = false
      states = [:]
      order = []
    }
  }

  // MARK: For the threads that follow and lead

  /// Whether the states behind batches are kept.
  var wantsState: Bool { state.withLock { $0.keeps } }

  /// Keeps the state behind a batch that stands.
  func keep(_ roots: TreeRoots, at lsn: LogSequenceNumber) {
    state.withLock { state in
      guard state.keeps, state.states.updateValue(roots, forKey: lsn) == nil else { return }
      state.order.append(lsn)
      if state.order.count > Self.stateCountMax {
        let removed = state.order.count / 2
        for lsn in state.order[..<removed] { state.states[lsn] = nil }
        state.order.removeFirst(removed)
      }
    }
  }

  // MARK: For the node's thread

  /// What there is to do.
  enum Step {
    case nothing
    /// States are kept from now on: that at the end of the log here as well.
    case begin
    case answer(VerificationAnswer)
  }

  /// - Parameters:
  ///   - request: as PostgreSQL has it; nil if there is none.
  ///   - position: up to where this server has the log.
  func step(_ request: VerificationRequest?, at position: LogSequenceNumber) -> Step {
    let (step, wanted) = state.withLock { state -> (Step, TreeRoots?) in
      guard let request else {
        state.request = nil
        state.answer = nil
        state.end()
        return (.nothing, nil)
      }
      if state.request?.id != request.id {
        state.end()
        state.request = request
        state.began = .now
        state.answer = nil
        // Too late to keep the states that are asked for.
        guard request.lsn == nil else { return (.nothing, nil) }
        state.keeps = true
        return (.begin, nil)
      }
      // Said again until the request is gone: one may be lost.
      if let answer = state.answer { return (.answer(answer), nil) }
      guard state.keeps else { return (.nothing, nil) }
      if ContinuousClock.now - state.began > Self.patience { state.end() }
      guard let lsn = request.lsn, position >= lsn else { return (.nothing, nil) }
      state.request = request
      let roots = state.states[lsn]
      state.end()
      if let roots { return (.nothing, roots) }
      let answer = VerificationAnswer(request: request.id, lsn: lsn, hashes: nil)
      state.answer = answer
      return (.answer(answer), nil)
    }
    if let request, let wanted, let lsn = request.lsn { hash(wanted, at: lsn, of: request.id) }
    return step
  }

  /// Hashes a state on a thread of its own: a large one takes seconds.
  private func hash(
    _ roots: TreeRoots, at lsn: LogSequenceNumber, of request: [UInt8]
  ) {
    let thread = Thread { [weak self] in
      let hashes = VerificationAnswer.Hashes(
        data: CheckpointCoding.contentHash(of: roots.data),
        system: CheckpointCoding.contentHash(of: roots.system))
      self?.state.withLock { state in
        guard state.request?.id == request else { return }
        state.answer = VerificationAnswer(request: request, lsn: lsn, hashes: hashes)
      }
    }
    thread.name = "dendro-verify"
    thread.start()
  }
}

/// What a command asks of all servers of a namespace: as a row in `dendro.verification`.
struct VerificationRequest: Hashable, Sendable {
  static let idByteCount = 16

  /// Drawn at random.
  var id: [UInt8]
  /// The write behind which all servers hash their data; nil as long as they are to say that they keep states.
  var lsn: LogSequenceNumber?
}

/// What one server answers: as a row in `dendro.verified`.
struct VerificationAnswer: Hashable, Sendable {
  struct Hashes: Hashable, Sendable {
    var data: UInt64
    var system: UInt64
  }

  var request: [UInt8]
  var lsn: LogSequenceNumber
  /// Nil if the server has not kept the state.
  var hashes: Hashes?
}
