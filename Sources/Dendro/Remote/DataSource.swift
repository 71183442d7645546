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
  /// - Parameters:
  ///   - hub: gets the error, if there is no completion.
  ///   - completion: called once.
  @inline(__always)
  func submit(
    _ write: WriteView, reportingTo hub: EventHub,
    completion: (@Sendable (DatabaseError?) -> Void)? = nil
  ) {
    if case .engine(let engine) = self {
      guard let completion else { return engine.submit(write, completion: nil) }
      return engine.submit(write) { result in
        switch result {
        case .success: completion(nil)
        case .failure(let error): completion(DatabaseError(error))
        }
      }
    }
    submitRemotely(write, completion ?? { if let error = $0 { hub.report(error) } })
  }

  private func submitRemotely(
    _ write: WriteView, _ completion: @escaping @Sendable (DatabaseError?) -> Void
  ) {
    guard case .remote(let remote) = self else { return }
    remote.write(Draft(decoding: write), completion: completion)
  }
}
