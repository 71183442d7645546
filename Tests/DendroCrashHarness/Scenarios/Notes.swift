import DendroEngine
import DendroTree
import Synchronization

/// What completions and callbacks noted, in order. Any thread may note.
final class Notes: Sendable {
  private let list = Mutex<[String]>([])

  var all: [String] { list.withLock { $0 } }

  func note(_ text: String) { list.withLock { $0.append(text) } }

  /// Throws unless exactly these were noted.
  func require(_ expected: [String]) throws {
    let all = all
    if all != expected { throw Violation("noted \(all), not \(expected)") }
  }

  var completion: Completion {
    { [self] result in
      let text =
        switch result {
        case .success: "done"
        case .failure(.closed): "closed"
        case .failure(.validation): "invalid"
        case .failure(.readOnly): "read only"
        case .failure(.tooManyWaiting): "too many"
        case .failure: "refused"
        }
      note(text)
    }
  }
}

extension Engine {
  /// Sets a leaf and takes it to the disk, under inline execution.
  func put(_ path: String, _ scalar: Scalar) throws(EngineError) {
    let failure = Mutex<EngineError?>(nil)
    submit(Draft(.set(Path(path), Node(scalar)))) { result in
      if case .failure(let error) = result { failure.withLock { $0 = error } }
    }
    pump()
    if let failure = failure.withLock({ $0 }) { throw failure }
  }

  /// The integer at a path; nil if there is none.
  func integer(at path: String) -> Int64? {
    guard case .integer(let value)? = head.root.node(at: Path(path)).scalar else { return nil }
    return value
  }
}

extension EngineOptions {
  /// For scenarios in which too much is to wait for the disk; only the scenario takes checkpoints.
  static var smallBacklog: EngineOptions {
    var options = EngineOptions()
    options.checkpointFactor = 0
    options.stallByteLimit = 4000
    return options
  }
}
