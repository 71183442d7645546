import DendroStorage
import Dispatch
import Synchronization

/// Collects what several threads have made of chunks.
final class ChunkResults<Value: Sendable>: Sendable {
  private let results: Mutex<[Result<Value, StorageError>?]>

  private init(count: Int) { results = Mutex(Array(repeating: nil, count: count)) }

  /// Calls `body` for each chunk, on all cores.
  ///
  /// - Returns: the results in order.
  /// - Throws: the first failure in that order.
  static func all(
    _ chunks: Range<Int>, _ body: @Sendable (Int) throws(StorageError) -> Value
  ) throws(StorageError) -> [Value] {
    let collected = ChunkResults(count: chunks.count)
    DispatchQueue.concurrentPerform(iterations: chunks.count) { index in
      let result = Result { () throws(StorageError) in try body(chunks.lowerBound + index) }
      collected.results.withLock { $0[index] = result }
    }
    var values: [Value] = []
    for result in collected.results.withLock({ $0 }) {
      guard let result else { preconditionFailure("each chunk has a result") }
      values.append(try result.get())
    }
    return values
  }
}
