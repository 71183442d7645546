import DendroStorage
import DendroTree
import Synchronization

/// Reads the pages of a tree from its checkpoint when they are touched for the first time.
///
/// It keeps the file open, so that the pages stay readable when retention removes the checkpoint. Any thread may
/// use it.
final class CheckpointPages: PageSource {
  let reader: CheckpointReader
  private let loadedChunkCount = Atomic<Int>(0)
  private let failures = Atomic<UInt64>(0)
  private let lastFailure = Mutex<PageFailure?>(nil)

  init(_ reader: CheckpointReader) { self.reader = reader }

  /// Whether there are chunks that were not read yet. Nothing has to be checked once this is false; it never
  /// becomes true again.
  var isPartial: Bool { unreadChunkCount > 0 }

  var unreadChunkCount: Int { reader.chunkCount - loadedChunkCount.load(ordering: .relaxed) }

  /// The tree, of which the top alone is read.
  func tree() throws(StorageError) -> Node {
    guard reader.chunkCount > 0 else { return .empty }
    let last = UInt32(reader.chunkCount - 1)
    do throws(PageFailure) {
      let top = try pages(ofChunk: last)
      didLoadChunk()
      do throws(PageImageError) {
        return try top.tree()
      } catch {
        throw failure(error, inChunk: last)
      }
    } catch {
      throw storageError(error)
    }
  }

  /// Calls `body`, which reads nodes of the tree.
  ///
  /// - Throws: why a page could not be read, even where `body` itself has not noticed that. Where another
  ///   thread reads such a page meanwhile, that error may be thrown here too.
  func reading<R>(_ body: () throws(PageFailure) -> R) throws(EngineError) -> R {
    let before = failureCount
    let result: R
    do throws(PageFailure) {
      result = try body()
    } catch {
      throw .storage(storageError(error))
    }
    if let failure = failure(since: before) { throw failure }
    return result
  }

  /// How many pages could not be read by calls that cannot throw.
  var failureCount: UInt64 { failures.load(ordering: .acquiring) }

  /// Why a page could not be read since `failureCount` was `before`; nil where all could.
  func failure(since before: UInt64) -> EngineError? {
    guard failureCount != before, let failure = lastFailure.withLock({ $0 }) else { return nil }
    return .storage(storageError(failure))
  }

  func storageError(_ failure: PageFailure) -> StorageError {
    if let error = failure.cause as? StorageError { return error }
    return .corrupt(
      path: reader.path, offset: 0, expected: "the pages of the tree", found: "\(failure.cause)")
  }

  // MARK: PageSource

  func pages(ofChunk number: UInt32) throws(PageFailure) -> ChunkPages {
    do throws(StorageError) {
      return try CheckpointCoding.pages(ofChunk: Int(number), reader, source: self)
    } catch {
      throw PageFailure(error)
    }
  }

  func failure(_ error: PageImageError, inChunk number: UInt32) -> PageFailure {
    PageFailure(CheckpointCoding.damage(error, inChunk: Int(number), reader))
  }

  func didLoadChunk() { loadedChunkCount.add(1, ordering: .relaxed) }

  func didFail(_ failure: PageFailure) {
    lastFailure.withLock { $0 = failure }
    failures.add(1, ordering: .releasing)
  }
}
