import DendroEngine
import DendroStorage
import DendroTree
import Dispatch
import Foundation
import Synchronization

/// The process that is killed. It runs several concurrent writers, some of which use transactions, takes
/// checkpoints in between, and prints each acknowledged write immediately.
enum KilledWriter {
  static let subcommand = "killed-writer"

  /// The lines of its output: `open` when the database is open, `<writer> <number>` for each acknowledged
  /// write, and `failed …` for a refused one.
  static func run(_ arguments: [String]) async -> Int32 {
    var options = Options(
      arguments, named: ["--directory", "--seed", "--writers", "--durability", "--draws"])
    let seed = options.number("--seed", in: 0...UInt64.max, default: 0)
    let draws = options.number("--draws", in: 0...UInt64.max, default: 0)
    let writerCount = options.number("--writers", in: 1...1024, default: 16)
    guard options.problem == nil, let directory = options["--directory"] else { return 64 }
    let engine: Engine
    let root: Node
    do throws(EngineError) {
      engine = try Engine.open(
        at: directory, options: engineOptions(options["--durability"], draws))
      root = try engine.view(at: .root)
    } catch {
      say("failed to open: \(error)")
      return 2
    }
    say("open")
    let workload = KillWorkload(seed: seed)
    await withTaskGroup { group in
      for writer in 0..<writerCount {
        let done = doneCount(of: writer, in: root)
        group.addTask {
          await write(on: engine, workload, writer: writer, from: done + 1)
        }
      }
      group.addTask { await takeCheckpoints(of: engine, draws: draws) }
    }
    return 3
  }

  /// Small limits, so that a few milliseconds see rolls, checkpoints and removals of old files.
  private static func engineOptions(_ durability: String?, _ draws: UInt64) -> EngineOptions {
    var options = EngineOptions()
    switch durability {
    case "none": options.durability = .none
    case "interval": options.durability = .interval(.milliseconds(5))
    default: options.durability = .everyCommit
    }
    options.segmentByteLimit = [16 << 10, 64 << 10, 1 << 20][Int(draws % 3)]
    options.checkpointByteMin = [8 << 10, 32 << 10, 256 << 10][Int(draws / 3 % 3)]
    options.checkpointFactor = 0.5
    return options
  }

  private static func doneCount(of writer: Int, in root: Node) -> Int {
    ["counters/updates/\(writer)", "plain/\(writer)"].reduce(0) { sum, place in
      guard case .integer(let count)? = root.node(at: try! Path(parsing: place)).scalar else {
        return sum
      }
      return sum + Int(count)
    }
  }

  private static func write(
    on engine: Engine, _ workload: KillWorkload, writer: Int, from first: Int
  ) async {
    var number = first
    while true {
      let acknowledged = number
      let draft = Draft(workload.write(of: writer, number: number))
      let isDone = await withUnsafeContinuation { (continuation: UnsafeContinuation<Bool, Never>) in
        let complete: @Sendable (EngineError?) -> Void = { error in
          if let error {
            say("failed \(writer) \(acknowledged): \(error)")
          } else {
            say("\(writer) \(acknowledged)")
          }
          continuation.resume(returning: error == nil)
        }
        // Every other writer counts by transactions, so that both kinds meet.
        if case .increment = draft.write, !writer.isMultiple(of: 2) {
          count(on: engine, writer: writer, refused: complete) { complete($0.failure) }
        } else {
          engine.submit(draft) { complete($0.failure) }
        }
      }
      guard isDone else { return }
      number += 1
    }
  }

  private static func takeCheckpoints(of engine: Engine, draws: UInt64) async {
    guard draws % 2 == 0 else { return }
    while true {
      try? await Task.sleep(for: .milliseconds(Int(draws % 7) + 1))
      do throws(EngineError) {
        try await engine.checkpoint()
      } catch {
        say("failed checkpoint: \(error)")
        return
      }
    }
  }

  /// The count of one writer by a transaction on the counts of all, with which every other write of a
  /// count conflicts: what is lost between them, the verdict misses.
  private static func count(
    on engine: Engine, writer: Int, refused: @escaping @Sendable (EngineError) -> Void,
    completion: @escaping @Sendable (Result<Node, EngineError>) -> Void
  ) {
    // One at a time, and not on a thread that others need.
    transactions.async {
      let counts = try! Path(parsing: "plain")
      let place = try! Path(parsing: "\(writer)")
      engine.transact(at: counts, refused: refused) { input in
        var counted = input
        let sum = Number.integer(1).incrementing(input.node(at: place).scalar)
        counted.graft(Node(sum), at: place)
        return TransactionDecision(Draft(.set(counts, counted)), completion: completion)
      }
    }
  }

  private static let transactions = DispatchQueue(label: "crashlab.transactions")

  /// One line, in one call: shorter than `PIPE_BUF`, so no other thread's line gets into it.
  private static func say(_ line: String) {
    var bytes = Array((line + "\n").utf8)
    _ = Foundation.write(1, &bytes, bytes.count)
  }
}

extension Result {
  fileprivate var failure: Failure? { if case .failure(let error) = self { error } else { nil } }
}
