package import DendroStorage
package import DendroTree
import Dispatch
import Synchronization

/// Follows the durable writes of the log, in order, from behind any write on.
///
/// It reads a page at a time from the files, on `History.reading`. Until it is freed, retention keeps the log
/// that it has not read yet, up to `Retention.followerByteLimit`. It is for one consumer: pages requested at
/// the same time come in any order.
package final class ChangeReader: Sendable {
  /// Raw bytes after which a page ends; only a larger record is divided.
  private static let pageByteLimit = 256 << 10

  private let history: History
  private let path: Path
  private let state: Shared

  /// The state, which the block that closes the cursor keeps alive after the reader.
  private final class Shared: Sendable {
    private let state: Mutex<State>

    init(_ state: sending State) { self.state = Mutex(state) }

    func withLock<R: Sendable, E: Error>(_ body: (inout State) throws(E) -> R) throws(E) -> R {
      try state.withLock { (state: inout sending State) throws(E) -> R in try body(&state) }
    }
  }

  private struct State {
    /// The last write that was read.
    var position: LogSequenceNumber
    /// The raw bytes of the records that were read.
    var byteCount = 0
    var cursor: LogCursor?
    /// What is left of the record that the cursor has read last, if pages divide it.
    var rest: LargeRecord?
    var pin: HistoryPins.ID?
    /// The pin for a writer in another process.
    var published: PublishedPosition?
  }

  /// The last write that was read.
  package var position: LogSequenceNumber { state.withLock { $0.position } }

  /// The raw bytes of the records that were read, also of writes that do not concern the path.
  package var byteCount: Int { state.withLock { $0.byteCount } }

  init(_ history: History, since lsn: LogSequenceNumber, path: Path) {
    self.history = history
    self.path = path
    state = Shared(State(position: lsn))
  }

  deinit {
    let isReading = state.withLock { state in
      if let pin = state.pin { history.pins.remove(pin) }
      return state.cursor != nil
    }
    // Closed on the queue: any thread may release the last reference, and closing a removed file frees its
    // space, which may wait for the disk.
    if isReading { history.reading.async { [state] in state.withLock { $0.cursor = nil } } }
  }

  /// Waits for the next writes that concern the path, one or more, without blocking a thread.
  ///
  /// - Parameter end: the last write that is waited for, whatever it concerns; nil if there is none.
  /// - Returns: nil behind `end`, or once the task is cancelled or the engine closed; in a read-only engine that does not
  ///   follow a writer also behind the last write that opening found.
  /// - Throws: `.outOfHistory` if the log no longer, or not yet, has the next write; `.storage` if the
  ///   files cannot be read.
  @concurrent package func next(
    upTo end: LogSequenceNumber? = nil
  ) async throws(EngineError) -> [LoggedWrite]? {
    while !Task.isCancelled, !history.isClosed {
      let position = self.position
      if let end, position >= end { return nil }
      let (durable, last) = history.pipeline.withAdmission {
        ($0.durableLSN, $0.lastLSN)
      }
      if position > last { throw history.refusal(of: .lsn(position)) }
      if position < durable {
        let page = await onReadingQueue { () throws(EngineError) in try self.page(upTo: durable) }
        // After closing, another opener may be changing the files.
        if history.isClosed { return nil }
        let writes = try page.get()
        if !writes.isEmpty { return writes }
      } else {
        if let failure = history.failure { throw failure }
        if history.isReadOnly, !history.isFollowing { return nil }
        let pipeline = history.pipeline
        let isMore = await pipeline.groupCommit.durableSignal.wait(
          behind: position, durable: { pipeline.withAdmission { $0.durableLSN } })
        if !isMore, let failure = history.failure { throw failure }
        if !isMore { return nil }
      }
    }
    return nil
  }

  private func onReadingQueue(
    _ body: @escaping @Sendable () throws(EngineError) -> [LoggedWrite]
  ) async -> Result<[LoggedWrite], EngineError> {
    await withUnsafeContinuation { continuation in
      history.reading.async { continuation.resume(returning: Result(catching: body)) }
    }
  }

  /// Reads to the end of a page, or to the write `durable` if that comes first. Waits for the disk.
  ///
  /// - Returns: the page's writes that concern the path, which may be none.
  package func page(upTo durable: LogSequenceNumber) throws(EngineError) -> [LoggedWrite] {
    do throws(StorageError) {
      return try state.withLock { (state) throws(StorageError) in
        try self.page(upTo: durable, &state)
      }
    } catch {
      // A write that retention has removed is no damage.
      let position = self.position
      if let first = try? history.directory.contents().segments.first,
        first.firstLSN > position.next
      {
        throw history.refusal(of: .lsn(position))
      }
      throw .storage(error)
    }
  }

  private func page(upTo durable: LogSequenceNumber, _ state: inout State)
    throws(StorageError) -> [LoggedWrite]
  {
    let cursor: LogCursor
    if let open = state.cursor {
      cursor = open
      try cursor.refresh()
    } else {
      let position = state.position
      if state.pin == nil {
        state.pin = try history.pins.pin(.followed) { () throws(StorageError) in (position, ()) }?
          .id
      }
      if history.isFollowing, state.published == nil {
        state.published = try history.directory.publishPosition(position)
      }
      cursor = LogCursor(history.directory, after: position, isLive: true)
      state.cursor = cursor
    }
    var writes: [LoggedWrite] = []
    var byteCount = 0
    while state.position < durable, byteCount < Self.pageByteLimit, !history.isClosed {
      do throws(StorageError) {
        if let rest = state.rest {
          try take(rest, &state, into: &writes, byteCount: &byteCount)
        } else if try !takeRecord(of: cursor, &state, into: &writes, byteCount: &byteCount) {
          throw history.missing(state.position.next)
        }
      } catch {
        // The next call reads from the position again.
        state.cursor = nil
        state.rest = nil
        // What was read before the error comes first.
        if writes.isEmpty { throw error }
        break
      }
    }
    if let pin = state.pin {
      history.pins.move(pin, to: state.position)
    }
    state.published?.move(to: state.position)
    return writes
  }

  /// Takes the next record; of a large one, which pages divide, nothing but its bytes.
  ///
  /// - Returns: false at the end of the log.
  private func takeRecord(
    of cursor: LogCursor, _ state: inout State, into writes: inout [LoggedWrite],
    byteCount: inout Int
  ) throws(StorageError) -> Bool {
    try cursor.record { (record, payload) throws(StorageError) in
      guard record.firstLSN <= state.position.next else {
        throw history.missing(state.position.next)
      }
      state.byteCount += payload.count
      if payload.count > Self.pageByteLimit {
        return state.rest = LargeRecord(record, payload)
      }
      var taken: [LoggedWrite] = []
      let problem = RecordWrites.forEach(record, payload) { write in
        if write.lsn > state.position, write.write.concerns(path) { taken.append(write) }
        return true
      }
      if let problem { throw record.corrupt(problem) }
      writes += taken
      byteCount += payload.count
      state.position = max(state.position, record.lastLSN)
    }
  }

  /// Takes writes of a large record until the page is full.
  private func take(
    _ record: LargeRecord, _ state: inout State, into writes: inout [LoggedWrite],
    byteCount: inout Int
  ) throws(StorageError) {
    while byteCount < Self.pageByteLimit || record.isDecoded {
      guard let write = try record.next() else { return state.rest = nil }
      byteCount += write.byteCount
      guard write.lsn > state.position else { continue }
      if write.write.concerns(path) { writes.append(write) }
      state.position = write.lsn
    }
  }
}

/// A record of which no page has all writes: its bytes, decoded as far as they were asked for.
private final class LargeRecord {
  private let record: RecordInfo
  // The reader refers to it.
  private var payload = RawBuffer()
  private var reader: WriteReader
  private var count = 0

  init(_ record: RecordInfo, _ payload: UnsafeRawBufferPointer) {
    self.record = record
    self.payload.reserve(payload.count)
    let copy = self.payload.base
    if let start = payload.baseAddress { copy.copyMemory(from: start, byteCount: payload.count) }
    reader = WriteReader(
      UnsafeRawBufferPointer(start: copy, count: payload.count), firstLSN: record.firstLSN,
      baseTime: record.baseTime)
  }

  /// Whether its last write was decoded.
  var isDecoded: Bool { count == record.count }

  /// - Returns: the next write; nil at the end.
  func next() throws(StorageError) -> LoggedWrite? {
    guard count < record.count else {
      if !reader.isAtEnd { throw record.corrupt(RecordWrites.bytesBehind(record)) }
      return nil
    }
    count += 1
    do throws(CodingError) {
      return try reader.next()
    } catch {
      throw record.corrupt(RecordWrites.problem(error))
    }
  }
}

extension RecordInfo {
  fileprivate func corrupt(_ problem: String) -> StorageError {
    .corrupt(path: segment.fileName, offset: offset, expected: "writes", found: problem)
  }
}

extension Write {
  /// Whether it changes nothing of the data: an update without entries.
  package var isNothing: Bool {
    if case .update(_, let entries) = self { entries.isEmpty } else { false }
  }

  /// Whether it changes data at `path`, above or below.
  package func concerns(_ path: Path) -> Bool {
    func meets(_ place: Path) -> Bool { place.isPrefix(of: path) || path.isPrefix(of: place) }
    guard case .update(let base, let entries) = self else { return meets(self.path) }
    // One that changes the second root alone has no entries.
    return meets(base) && entries.contains { meets(base.appending($0.path)) }
  }
}
