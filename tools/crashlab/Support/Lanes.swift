import Dispatch
import Foundation

/// Several threads that do the same until there is nothing left to do. More than there are cores, where
/// each mostly waits.
enum Lanes {
  static func run(_ count: Int, _ body: @escaping @Sendable () -> Void) {
    let lanes = DispatchGroup()
    for _ in 0..<count {
      lanes.enter()
      Thread.detachNewThread {
        body()
        lanes.leave()
      }
    }
    lanes.wait()
  }
}
