import DendroCrashHarness
import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Foundation
import Synchronization

/// One database on a disk with room for so many pages more.
struct FullRun {
  let folder: String
  let pageCount: Int
  /// Whether it is a checkpoint that finds the disk full, or an append.
  let isCheckpoint: Bool
  private var random: SeededRandomness
  /// Letters at random, each used once: they do not compress away.
  private var letters: ArraySlice<UInt8>
  private(set) var problems: [String] = []
  private(set) var details: [String: Int] = [:]
  /// The tree of everything acknowledged.
  private var tree = Node.empty
  private var refusedCount = 0

  private static let letters: [UInt8] = {
    let random = SeededRandomness(seed: 1)
    return (0..<4 << 20).map { _ in 0x40 | UInt8(truncatingIfNeeded: random.next()) & 0x3f }
      .map { $0 == 0x7f ? 0x21 : $0 }
  }()

  init(folder: String, pageCount: Int, seed: UInt64, isCheckpoint: Bool) {
    letters = Self.letters[...]
    self.folder = folder
    self.pageCount = pageCount
    self.isCheckpoint = isCheckpoint
    random = SeededRandomness(seed: seed &* 512 &+ UInt64(pageCount) &* 2 + (isCheckpoint ? 1 : 0))
  }

  private var database: String { "\(folder)/database" }
  private var ballast: String { "\(folder)/ballast" }

  mutating func run() {
    do throws(EngineError) {
      clear()
      let engine = try open()
      // Something to make a checkpoint of, and something that is there before the disk is full.
      for _ in 0..<(isCheckpoint ? 30 : 3) { write(on: engine) }
      if refusedCount > 0 { problems.append("refused with room for everything") }
      fillUp()
      if isCheckpoint { checkpoint(engine, mayFail: true) }
      // More than there is room for in all.
      var writeCount = 0
      while refusedCount == 0, writeCount < 400 {
        write(on: engine)
        writeCount += 1
      }
      if refusedCount == 0 { problems.append("nothing was refused on a full disk") }
      compare(engine, "full")
      checkpoint(engine, mayFail: true)
      for _ in 0..<3 { write(on: engine) }
      compare(engine, "still full")

      // Room again. The first write may still be refused: it is what looks for room.
      try? FileManager.default.removeItem(atPath: ballast)
      details["writes refused", default: 0] += refusedCount
      refusedCount = 0
      write(on: engine, small: true)
      let lookedCount = refusedCount
      for _ in 0..<3 { write(on: engine, small: true) }
      if refusedCount > lookedCount { problems.append("refused though there is room again") }
      checkpoint(engine, mayFail: false)
      write(on: engine, small: true)
      compare(engine, "room again")
      try engine.close()
      let reopened = try open()
      compare(reopened, "reopened")
      if reopened.report.tornTail != nil {
        problems.append("closed in order, but its tail is torn")
      }
      try reopened.close()
    } catch {
      problems.append("\(error)")
    }
    clear()
  }

  private func clear() {
    try? FileManager.default.removeItem(atPath: ballast)
    try? FileManager.default.removeItem(atPath: database)
  }

  private func open() throws(EngineError) -> Engine {
    var options = EngineOptions()
    options.execution = .inline
    options.checkpointFactor = 0
    return try Engine.open(at: database, options: options)
  }

  /// Takes all room but for the pages.
  private mutating func fillUp() {
    var status = statvfs()
    guard statvfs(folder, &status) == 0 else {
      problems.append("statvfs: \(errno)")
      return
    }
    let free = Int(status.f_bavail) * Int(status.f_bsize)
    let count = free - pageCount * FullCommand.pageByteCount
    guard count > 0 else { return }
    if !FileManager.default.createFile(atPath: ballast, contents: Data(count: count)) {
      problems.append("the disk cannot be filled with \(count) bytes")
    }
  }

  private mutating func write(on engine: Engine, small: Bool = false) {
    let count = small ? 20 : Int.random(in: 1...9000, using: &random)
    if letters.count < count { letters = Self.letters[...] }
    let text = String(decoding: letters.prefix(count), as: UTF8.self)
    letters = letters.dropFirst(count)
    let write = Write.set(
      Path("posts/p\(Int.random(in: 0..<200, using: &random))"), Node(.string(text)))
    let outcome = Mutex<Result<LogSequenceNumber?, EngineError>?>(nil)
    engine.submit(Draft(write)) { result in outcome.withLock { $0 = result } }
    engine.pump()
    switch outcome.withLock({ $0 }) {
    case .success?:
      _ = tree.apply(write)
      details["writes", default: 0] += 1
    case .failure(.diskFull)?: refusedCount += 1
    case .failure(let error)?: problems.append("refused as \(error)")
    case nil: problems.append("a write was not answered")
    }
  }

  private mutating func checkpoint(_ engine: Engine, mayFail: Bool) {
    do throws(EngineError) {
      try engine.checkpoint()
      details["checkpoints", default: 0] += 1
    } catch {
      details["checkpoints refused", default: 0] += 1
      guard mayFail else { return problems.append("no checkpoint though there is room: \(error)") }
      switch error {
      case .diskFull: break
      case .storage(.io(_, _, _, let cause)) where cause.isOutOfSpace: break
      default: problems.append("a checkpoint was refused as \(error)")
      }
    }
  }

  private mutating func compare(_ engine: Engine, _ when: String) {
    if engine.head.root != tree {
      problems.append("\(when): the head is not what was acknowledged")
    }
  }
}
