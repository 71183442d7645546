import CDendroPQ

/// libpq, which the process opens when it is first needed.
enum PostgresLibrary {
  /// Its functions, for any thread.
  ///
  /// - Throws: `noLibrary` if it is not installed.
  static func functions() throws(PostgresError) -> UnsafePointer<dendro_pq> {
    switch opened {
    case .success(let functions): return functions
    case .failure(let error): throw error
    }
  }

  nonisolated(unsafe) private static let opened: Result<UnsafePointer<dendro_pq>, PostgresError> = {
    let functions = UnsafeMutablePointer<dendro_pq>.allocate(capacity: 1)
    functions.initialize(to: dendro_pq())
    guard dendro_pq_open(functions) == 0 else {
      let reason = dlerror().map { String(cString: $0) } ?? "it lacks a function"
      functions.deallocate()
      return .failure(.noLibrary(reason))
    }
    return .success(UnsafePointer(functions))
  }()
}
