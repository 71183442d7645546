import DendroEngine
import DendroTree

/// Where the data of a location come from, and what takes the writes there.
enum DataSource {
  case engine(Engine)
  case remote(any Remote)
  /// A location of `.info` where there is no engine.
  case info

  /// Passes on a write that is checked.
  ///
  /// - Parameter hub: gets the error.
  @inline(__always)
  func submit(_ write: WriteView, reportingTo hub: EventHub) {
    if case .engine(let engine) = self { return engine.submit(write, completion: nil) }
    submitRemotely(write) { if let error = $0 { hub.report(error) } }
  }

  /// Passes on a write that is checked.
  ///
  /// - Parameters:
  ///   - ref: what was written to.
  ///   - block: called once.
  func submit(
    _ write: WriteView, to ref: DatabaseReference, calling block: Callback<CompletionFunction>
  ) {
    let hub = ref.owner.hub
    // One closure for each way: each write makes one.
    if case .engine(let engine) = self {
      return engine.submit(write) { result in
        switch result {
        case .success: hub.enqueue(on: block.isolation) { block.call(nil, ref) }
        case .failure(let error):
          hub.enqueue(on: block.isolation) { block.call(DatabaseError(error), ref) }
        }
      }
    }
    submitRemotely(write) { error in hub.enqueue(on: block.isolation) { block.call(error, ref) } }
  }

  private func submitRemotely(
    _ write: WriteView, _ completion: @escaping @Sendable (DatabaseError?) -> Void
  ) {
    guard case .remote(let remote) = self else { return }
    remote.write(Draft(decoding: write), completion: completion)
  }
}
