import DendroPlatform
import DendroStorage
import DendroTree
import Dispatch
import Synchronization

/// Reads the pages of a tree from its checkpoint when they are touched for the first time.
///
/// It keeps the file open until no tree has a page that was not read, so that the pages stay readable when retention
/// removes the checkpoint. Any thread may use it.
final class CheckpointPages: PageSource {
  let reader: CheckpointReader
  /// The chunks to which pages in memory refer, and which were not read.
  private let unread = Mutex<[ObjectIdentifier: UnreadChunk]>([:])
  private let isComplete = Atomic<Bool>(false)
  private let failures = ReadingFailures()
  private let visibility: Mutex<ChunkVisibility>
  /// The memory of the pages of chunks that were decoded to estimate that of others.
  private let samples = Mutex<[Int: Int]>([:])

  /// The error of the first chunk that could not be read, and who gets it.
  private let damage = Mutex(Damage())

  private struct Damage {
    var first: StorageError?
    var report: (@Sendable (StorageError) -> Void)?
  }

  private struct UnreadChunk { weak var chunk: PageChunk? }

  init(_ reader: CheckpointReader) {
    self.reader = reader
    visibility = Mutex(ChunkVisibility(chunkCount: 0))
  }

  /// Whether some tree, of the head or before, has pages that were not read yet. Nothing has to be checked once this
  /// is false; it never becomes true again.
  var isPartial: Bool { !isComplete.load(ordering: .acquiring) }

  /// The chunks of the file that were not read; 0 once no tree needs one of them.
  var unreadChunkCount: Int { isPartial ? visibility.withLock { $0.unreadCount } : 0 }

  /// The data, of which the top alone is read. Call once.
  func tree() throws(StorageError) -> Node {
    let chunkCount = try RootsChunk.dataChunkCount(of: reader)
    visibility.withLock { $0 = ChunkVisibility(chunkCount: chunkCount) }
    guard chunkCount > 0 else {
      complete()
      return .empty
    }
    let last = UInt32(chunkCount - 1)
    do throws(PageFailure) {
      let top = try pages(ofChunk: last)
      try note(top)
      if unread.withLock({ $0.isEmpty }) { complete() }
      do throws(PageImageError) {
        return try top.tree()
      } catch {
        throw failure(error, inChunk: last)
      }
    } catch {
      throw storageError(error)
    }
  }

  /// Reads all that no tree has read yet, and closes the file. Waits for the disk on the calling thread.
  ///
  /// - Throws: why a chunk could not be read.
  /// - Returns: false if `isCancelled`, called before each chunk, has returned true.
  func readAll(isCancelled: () -> Bool) throws(StorageError) -> Bool {
    while isPartial {
      let chunks = unread.withLock { $0.values.compactMap(\.chunk) }
      // One that is being freed is not there any more, and counts as unread for a moment yet.
      if chunks.isEmpty { sched_yield() }
      for chunk in chunks.sorted(by: { $0.number < $1.number }) {
        if isCancelled() { return false }
        do throws(PageFailure) {
          try chunk.load()
        } catch {
          throw storageError(error)
        }
      }
    }
    reader.close()
    // It may be closed on this queue at this moment.
    Self.closing.sync {}
    return true
  }

  /// Calls `body`, which reads nodes of the tree on this thread.
  ///
  /// - Throws: why a page could not be read, even if `body` itself has not noticed that.
  func reading<R>(_ body: () throws(PageFailure) -> R) throws(EngineError) -> R {
    let reading = failures.begin()
    let result: Result<R, PageFailure>
    do throws(PageFailure) {
      result = .success(try body())
    } catch {
      result = .failure(error)
    }
    let unnoticed = failures.end(reading)
    switch result {
    case .failure(let failure): throw .storage(storageError(failure))
    case .success(let result):
      if let unnoticed { throw .storage(storageError(unnoticed)) }
      return result
    }
  }

  /// How many pages could not be read by calls that cannot throw, for `failure(since:)`.
  var failureCount: UInt64 { failures.mark }

  /// Why this thread could not read a page since `failureCount` was `before`; nil if it could read all.
  func failure(since before: UInt64) -> EngineError? {
    failures.failure(since: before).map { .storage(storageError($0)) }
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
    guard let pages = try? CheckpointCoding.pages(ofChunk: chunk, reader, source: nil) else {
      return nil
    }
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
      noteDamage(error)
      throw PageFailure(error)
    }
  }

  /// The error of the first chunk that could not be read; nil if all could be read so far.
  var firstDamage: StorageError? { damage.withLock { $0.first } }

  /// Calls `report` with the error of the first chunk that cannot be read, at once if there is one already.
  func reportDamage(to report: @escaping @Sendable (StorageError) -> Void) {
    let first = damage.withLock { damage in
      damage.report = report
      return damage.first
    }
    if let first { report(first) }
  }

  private func noteDamage(_ error: StorageError) {
    switch error {
    case .corrupt, .limit: break
    case .io(_, _, _, let reason) where reason.isOfMedium: break
    // What passes is no damage.
    default: return
    }
    let report = damage.withLock { damage in
      guard damage.first == nil else { return nil as (@Sendable (StorageError) -> Void)? }
      damage.first = error
      return damage.report
    }
    report?(error)
  }

  func failure(_ error: PageImageError, inChunk number: UInt32) -> PageFailure {
    let damage = CheckpointCoding.damage(error, inChunk: Int(number), reader)
    noteDamage(damage)
    return PageFailure(damage)
  }

  func didMake(_ chunk: PageChunk) {
    unread.withLock { $0[ObjectIdentifier(chunk)] = UnreadChunk(chunk: chunk) }
  }

  func willKeep(_ pages: ChunkPages, of chunk: PageChunk) throws(PageFailure) {
    try note(pages)
    if removeUnread(chunk) { complete() }
  }

  func willFree(_ chunk: PageChunk) {
    guard removeUnread(chunk) else { return }
    isComplete.store(true, ordering: .releasing)
    // Not on this thread, which may hold the admission lock: if the checkpoint was removed, its space is freed.
    Self.closing.async { [reader] in reader.close() }
  }

  private static let closing = DispatchQueue(label: "dendro.closing")

  /// - Returns: whether no other chunk has to be read any more.
  private func removeUnread(_ chunk: PageChunk) -> Bool {
    unread.withLock { unread in
      unread[ObjectIdentifier(chunk)] = nil
      return unread.isEmpty
    }
  }

  /// Notes that nothing has to be read any more. More than one thread may see that.
  private func complete() {
    isComplete.store(true, ordering: .releasing)
    reader.close()
  }

  private func note(_ pages: ChunkPages) throws(PageFailure) {
    let number = visibility.withLock { $0.add(pages) }
    guard let number else { return }
    throw failure(
      PageImageError(
        expected: "chunks below this one", found: "chunk \(number), which is below another",
        offset: 0), inChunk: pages.number)
  }

  func didFail(_ failure: PageFailure) { failures.add(failure) }
}
