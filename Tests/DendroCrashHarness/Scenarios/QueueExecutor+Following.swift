import DendroTestSupport
import Dispatch
import Foundation

extension QueueExecutor {
  /// Starts a task in which `body` notes the elements of a sequence; at its end the task notes «end» or the
  /// error, and signals. Returns once the first element was noted and the task waits for the next.
  func follow(
    _ notes: Notes, _ isOver: DispatchSemaphore, _ body: @escaping @Sendable () async throws -> Void
  ) -> Task<Void, Never> {
    let task = Task(executorPreference: self) {
      do {
        try await body()
        notes.note("end")
      } catch {
        notes.note("\(error)")
      }
      isOver.signal()
    }
    while notes.all.isEmpty { usleep(200) }
    settle()
    return task
  }
}
