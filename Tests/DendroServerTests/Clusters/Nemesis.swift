import DendroTestSupport
import Synchronization

/// What happens to servers, to PostgreSQL, and to the lines between them.
enum Nemesis: String, CaseIterable, Sendable {
  // The first three are those of the shortest run.
  case serverKilled = "a server is killed"
  case linesHeld = "a server's lines are held, lose answers, or are closed"
  case failover = "the standby becomes the primary, and the old one goes on to run"
  case primaryAlone = "the primary is started again without its standby, which becomes the primary"
  case leaversKilled = "a server is killed while operations of sessions that have left run"
  case linesSlow = "a server's lines are slow, and then cut"
  case diskFull = "PostgreSQL's disk is full"
  case clockMoved = "servers' clocks are hours apart, and one is moved"
  case directoryRemoved = "a server's directory is removed"
  case postgresKilled = "PostgreSQL is killed"
  case postgresFrozen = "PostgreSQL stands still"
  case serverStopped = "a server is ended in order"
  case serverFrozen = "a server stands still"
  case linesCut = "a server's lines are cut again and again"

  static let countOfHistory = 3

  /// What happens in the history of a seed, in its order. Of so many seeds as there are cases each meets all of them.
  static func plan(seed: UInt64) -> [Nemesis] {
    var random = SeededGenerator(seed: seed &* 7 &+ 3)
    var plan = [allCases[Int(seed % UInt64(allCases.count))]]
    while plan.count < countOfHistory {
      let next = allCases[random.below(allCases.count)]
      // There is one standby.
      if !next.needsStandby || !plan.contains(where: \.needsStandby) { plan.append(next) }
    }
    return plan.shuffled(using: &random)
  }

  var needsStandby: Bool { self == .failover || self == .primaryAlone }
}

/// What all histories of a run have seen.
final class HistoryTally: Sendable {
  /// Why clients had to wait.
  enum Pause: String, CaseIterable, Sendable {
    case killed = "the server that led was killed"
    case ended = "the server that led was ended"
    case failedOver = "PostgreSQL failed over, and its old primary was killed"
    case failedOverBeside = "PostgreSQL failed over, and its old primary went on to run"
  }

  private struct State {
    var counts: [Nemesis: Int] = [:]
    var missing: [Nemesis: String] = [:]
    var pauses: [Pause: [Duration]] = [:]
    var historyCount = 0
    var operationCount = 0
    var acknowledgedCount = 0
    var duration = Duration.zero
  }

  private let state = Mutex(State())

  func note(_ nemesis: Nemesis) { state.withLock { $0.counts[nemesis, default: 0] += 1 } }

  /// - Parameter reason: why it cannot happen on this machine.
  func note(missing nemesis: Nemesis, _ reason: String) {
    let isNew = state.withLock { $0.missing.updateValue(reason, forKey: nemesis) } == nil
    if isNew { print("\(nemesis.rawValue): NOT RUN: \(reason)") }
  }

  func note(_ pause: Pause, _ duration: Duration) {
    state.withLock { $0.pauses[pause, default: []].append(duration) }
  }

  func note(_ history: WriteHistory, took duration: Duration) {
    state.withLock { state in
      state.historyCount += 1
      state.operationCount += history.operations.count
      state.acknowledgedCount += history.acknowledgedCount
      state.duration += duration
    }
  }

  /// Those that could have happened and did not.
  var missed: [Nemesis] {
    state.withLock { state in
      Nemesis.allCases.filter { state.counts[$0] == nil && state.missing[$0] == nil }
    }
  }

  var summary: String {
    state.withLock { state in
      var lines = [
        "histories of a cluster's clients: \(state.historyCount) with \(state.operationCount) writes, "
          + "\(state.acknowledgedCount) acknowledged, in \(state.duration.rounded)"
      ]
      for nemesis in Nemesis.allCases {
        lines.append("  \(state.counts[nemesis] ?? 0) times \(nemesis.rawValue)")
      }
      for pause in Pause.allCases {
        guard let all = state.pauses[pause]?.sorted(), let last = all.last else { continue }
        lines.append(
          "  no write was acknowledged for \(all[all.count / 2].rounded), \(last.rounded) at most, "
            + "in \(all.count) cases: \(pause.rawValue)")
      }
      return lines.joined(separator: "\n")
    }
  }
}

extension Duration {
  /// As text, in hundredths of a second.
  var rounded: String {
    let (seconds, attoseconds) = components
    let hundredths = String(100 + attoseconds / 10_000_000_000_000_000)
    return "\(seconds).\(hundredths.dropFirst()) s"
  }
}
