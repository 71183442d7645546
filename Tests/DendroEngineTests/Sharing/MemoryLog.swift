import Synchronization

@testable import DendroEngine
@testable import DendroStorage

/// A shared log in memory: the rows that engines have appended, and what it is to answer.
final class MemoryLog: Sendable {
  struct Record: Sendable {
    let firstLSN: LogSequenceNumber
    let count: Int
    let baseTime: Int64
    let payload: [UInt8]
    /// How many records of its batch come before it.
    let placeInBatch: Int
  }

  private struct State {
    var records: [Record] = []
    var leader: Int?
    var failures: [SharedLogFailure?] = []
    var closed: [Int] = []
  }

  private let state = Mutex(State())

  var records: [Record] { state.withLock { $0.records } }
  var lastLSN: LogSequenceNumber {
    records.last.map { LogSequenceNumber($0.firstLSN.rawValue + UInt64($0.count) - 1) } ?? .zero
  }
  var closed: [Int] { state.withLock { $0.closed } }

  /// What the next batches are answered; nil: they are taken.
  func answer(_ failures: SharedLogFailure?...) { state.withLock { $0.failures += failures } }

  func setLeader(_ number: Int?) { state.withLock { $0.leader = number } }

  /// The shared log as the engine with this number sees it.
  func member(_ number: Int) -> Member { Member(self, number) }

  /// Has an engine take what it lacks, up to a number of records.
  func feed(_ engine: Engine, recordCount: Int = .max) throws {
    let behind = engine.head.lsn
    for record in records.filter({ $0.firstLSN > behind }).prefix(recordCount) {
      try record.payload.withUnsafeBytes { payload in
        try engine.take([
          SharedRecord(
            firstLSN: record.firstLSN, count: record.count, baseTime: record.baseTime,
            payload: payload)
        ])
      }
    }
  }

  final class Member: SharedLog {
    private let log: MemoryLog
    private let number: Int

    init(_ log: MemoryLog, _ number: Int) {
      self.log = log
      self.number = number
    }

    func append(_ records: [SharedRecord]) throws(SharedLogFailure) {
      let number = number
      let failure = log.state.withLock { state -> SharedLogFailure? in
        if let next = state.failures.first {
          state.failures.removeFirst()
          if let next { return next }
        }
        guard state.leader == number else { return .refused("another one leads") }
        for (place, record) in records.enumerated() {
          state.records.append(
            Record(
              firstLSN: record.firstLSN, count: record.count, baseTime: record.baseTime,
              payload: Array(record.payload), placeInBatch: place))
        }
        return nil
      }
      if let failure { throw failure }
    }

    func engineCloses() {}

    func engineClosed() {
      let number = number
      log.state.withLock { $0.closed.append(number) }
    }
  }
}
