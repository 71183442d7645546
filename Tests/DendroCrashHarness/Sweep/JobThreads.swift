import Dispatch
import Foundation

/// The threads on which all sweeps of the process run their jobs: one for each core, whatever else runs.
///
/// Not those of Swift's tasks, of which there are no more: a job computes without a pause, and a test
/// beside it that awaits something would wait for its turn until the sweeps are through.
enum JobThreads {
  private static let queues = (0..<max(1, ProcessInfo.processInfo.activeProcessorCount)).map {
    DispatchQueue(label: "dendro.jobs.\($0)")
  }

  /// Runs `body` on each of them at once, once what was asked for before is through.
  static func run(_ body: @escaping @Sendable () -> Void) async {
    await withCheckedContinuation { continuation in
      let group = DispatchGroup()
      for queue in queues { queue.async(group: group, execute: body) }
      group.notify(queue: .global()) { continuation.resume() }
    }
  }
}
