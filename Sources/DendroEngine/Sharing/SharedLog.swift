package import DendroStorage
package import DendroTree

/// A log that several engines share, each with a copy of it in its directory. It decides which batches stand: one engine
/// at a time leads and appends, the others take what it has appended.
///
/// An engine with a shared log acknowledges a batch once that log has it. Its own log is a copy, which is written after
/// that, so that it never has a write that the shared log lacks, and which is not synchronized for it.
package protocol SharedLog: AnyObject, Sendable {
  /// Appends the records of a batch, and waits until it is known whether they stand.
  ///
  /// Called in a turn, by one thread at a time. Without an answer it waits: for as long as it may still turn out that the
  /// batch stands.
  ///
  /// - Parameter records: of the batch, in their order; their payloads are lent for the time of the call.
  /// - Throws: why they surely do not stand, or, if the engine is being closed, that this is not known.
  func append(_ records: [SharedRecord]) throws(SharedLogFailure)

  /// Passes on a write that this engine does not take, since another one leads.
  ///
  /// - Parameter completion: called once, after the write has come back in the log, or with the reason why it does not
  ///   stand.
  /// - Returns: false if it is not passed on; then `completion` is not called.
  func forward(_ write: EncodedWrite, _ completion: @escaping Completion) -> Bool

  /// Passes on what a transaction makes, which is made only if what it was made from is still there.
  ///
  /// - Parameters:
  ///   - write: a set or a removal.
  ///   - input: what was at the write's path.
  ///   - completion: called once, after what it says can be seen here.
  /// - Returns: false if it is not passed on; then `completion` is not called.
  func forward(
    _ write: EncodedWrite, from input: Node, _ completion: @escaping SharedRequestCompletion
  ) -> Bool

  /// What is called once a write that has come back in the log is shown; nil if none waits for it. It was passed on once.
  ///
  /// - Parameters:
  ///   - origin: under which the write is in the log.
  ///   - data: the data right behind the write.
  func completion(of origin: WriteOrigin, in data: () -> Node) -> Completion?

  // MARK: What clients of others ask for

  /// The last write of the log, as far as this engine knows.
  var knownLSN: LogSequenceNumber { get }

  /// Called about once a second by what takes clients: what has waited too long is refused.
  func tick()

  /// Whether requests are passed on now, since another engine leads. It still is while those are made that were passed on
  /// before this engine began to lead: what comes later may not be made before them.
  var passesOn: Bool { get }

  /// Passes on what a client asks for.
  ///
  /// - Parameters:
  ///   - request: what it asks for.
  ///   - origin: under which the write will be in the log, if the request names one.
  ///   - completion: called once, after what it says can be seen here.
  /// - Returns: false if it is not passed on; then `completion` is not called.
  func pass(
    _ request: SharedRequest, origin: WriteOrigin?, _ completion: @escaping SharedRequestCompletion
  ) -> Bool

  /// Has requests of other engines' clients made by a handler while this engine leads; by none: they are refused.
  func handleRequests(with handler: (any SharedRequestHandler)?)

  /// Tells this opening of the engine from all others: letters and digits, always as many.
  var opening: String { get }

  /// Whether an opening of an engine surely takes no part any more; false if this one does not lead.
  func hasEnded(_ opening: Substring) -> Bool

  /// Called when the engine begins to close, or before, by what is about to close it. A batch whose outcome is not known may
  /// be waited for a while longer.
  func engineCloses()

  /// Called once, behind the last batch of an engine that is being closed.
  func engineClosed()
}

extension SharedLog {
  package var knownLSN: LogSequenceNumber { .zero }
  package func tick() {}
  package var passesOn: Bool { false }
  package var opening: String { "" }
  package func forward(_ write: EncodedWrite, _ completion: @escaping Completion) -> Bool { false }
  package func forward(
    _ write: EncodedWrite, from input: Node, _ completion: @escaping SharedRequestCompletion
  ) -> Bool { false }
  package func completion(of origin: WriteOrigin, in data: () -> Node) -> Completion? { nil }
  package func pass(
    _ request: SharedRequest, origin: WriteOrigin?, _ completion: @escaping SharedRequestCompletion
  ) -> Bool { false }
  package func handleRequests(with handler: (any SharedRequestHandler)?) {}
  package func hasEnded(_ opening: Substring) -> Bool { false }
}

/// Writes that follow each other, as one record of the log has them.
package struct SharedRecord {
  package let firstLSN: LogSequenceNumber
  /// How many writes; one or more.
  package let count: Int
  /// Milliseconds since 1970 of the first write.
  package let baseTime: Int64
  /// The writes, encoded, not compressed.
  package let payload: UnsafeRawBufferPointer

  package init(
    firstLSN: LogSequenceNumber, count: Int, baseTime: Int64, payload: UnsafeRawBufferPointer
  ) {
    self.firstLSN = firstLSN
    self.count = count
    self.baseTime = baseTime
    self.payload = payload
  }

  package var lastLSN: LogSequenceNumber {
    LogSequenceNumber(firstLSN.rawValue + UInt64(count) - 1)
  }
}

/// Why a batch was not appended to a shared log.
package enum SharedLogFailure: Error, Hashable {
  /// It does not stand.
  case refused(String)
  /// It may stand: the next opening finds out.
  case undecided(String)

  var asError: EngineError {
    switch self {
    case .refused(let reason): .unavailable(reason)
    case .undecided(let reason): .undecided(reason)
    }
  }
}

/// What an engine is opened with that shares its log.
package struct Sharing: Sendable {
  package let log: any SharedLog
  /// The same in all engines with this log.
  package let databaseID: DatabaseID
  /// Whether readers and listeners see a write as soon as it is admitted, as in a database that decides alone; false: once
  /// the shared log has it, so that they never see one that is taken back.
  package let showsAtOnce: Bool

  package init(log: any SharedLog, databaseID: DatabaseID, showsAtOnce: Bool = true) {
    self.log = log
    self.databaseID = databaseID
    self.showsAtOnce = showsAtOnce
  }

  /// Bytes of one write, and about those of one batch.
  package static let writeByteLimit = 16 << 20

  /// The options of an engine that shares its log.
  func applied(to options: EngineOptions) -> EngineOptions {
    var options = options
    // Acknowledged is what the shared log has.
    options.durability = .none
    options.loading = .whole
    options.writeByteLimit = min(options.writeByteLimit, Self.writeByteLimit)
    options.stallByteLimit = min(options.stallByteLimit, Self.writeByteLimit)
    return options
  }
}
