import DendroStorage
import Synchronization

/// Collects the chunks that several threads have read.
final class ChunkResults: Sendable {
  private let results: Mutex<[Result<[UInt8], StorageError>?]>

  init(count: Int) { results = Mutex(Array(repeating: nil, count: count)) }

  func set(_ i: Int, _ result: Result<[UInt8], StorageError>) {
    results.withLock { $0[i] = result }
  }

  /// All of them, in order, or the first failure.
  func get() throws(StorageError) -> [[UInt8]] {
    let taken = results.withLock { $0 }
    var chunks: [[UInt8]] = []
    for result in taken { chunks.append(try result!.get()) }
    return chunks
  }
}
