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
  private let visibility: Mutex<ChunkVisibility>
  /// The memory of the pages of chunks that were decoded to estimate that of others.
  private let samples = Mutex<[Int: Int]>([:])

  init(_ reader: CheckpointReader) {
    self.reader = reader
    visibility = Mutex(ChunkVisibility(chunkCount: reader.chunkCount))
  }

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
      didLoad(top)
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

  /// The memory that `root` takes, and that its pages in the checkpoint would take besides; an estimate.
  ///
  /// - Complexity: O(nodes in memory + chunks). A few chunks are read, and not kept.
  func byteCount(of root: Node) -> Int {
    // Before the pages are visited: a chunk that is read meanwhile is counted either way.
    let visibility = visibility.withLock { $0 }
    let memory = root.memory()
    let unread = visibility.unreadChunks(below: memory.unreadChunks)
    return memory.byteCount + byteCount(ofUnread: unread)
  }

  private static let sampleCountMax = 16

  /// The memory that chunks would take, estimated from some of them: small pages take several times the bytes that
  /// they have in a chunk, long strings as many.
  private func byteCount(ofUnread chunks: [Int]) -> Int {
    let sampleCount = min(chunks.count, Self.sampleCountMax)
    var raw = 0
    var memory = 0
    for sample in 0..<sampleCount {
      let chunk = chunks[chunks.count * sample / sampleCount]
      // The reads that need a damaged chunk throw.
      guard let byteCount = sampledByteCount(ofChunk: chunk) else { continue }
      raw += reader.rawByteCount(ofChunk: chunk)
      memory += byteCount
    }
    let total = chunks.reduce(0) { $0 + reader.rawByteCount(ofChunk: $1) }
    return raw == 0 ? total : Int(Double(total) * Double(memory) / Double(raw))
  }

  private func sampledByteCount(ofChunk chunk: Int) -> Int? {
    if let known = samples.withLock({ $0[chunk] }) { return known }
    guard let pages = try? pages(ofChunk: UInt32(chunk)) else { return nil }
    let byteCount = pages.memoryByteCount
    samples.withLock { $0[chunk] = byteCount }
    return byteCount
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

  func didLoad(_ chunk: ChunkPages) {
    loadedChunkCount.add(1, ordering: .relaxed)
    visibility.withLock { $0.add(chunk) }
  }

  func didFail(_ failure: PageFailure) {
    lastFailure.withLock { $0 = failure }
    failures.add(1, ordering: .releasing)
  }
}
