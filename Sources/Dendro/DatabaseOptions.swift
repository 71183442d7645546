import DendroEngine

/// How a database behaves. Every field has a default, and the defaults lose nothing.
public struct DatabaseOptions: Sendable {
  /// What an acknowledgement promises. Default: ``Durability/everyCommit``.
  public var durability: Durability = .everyCommit

  /// Whether opening makes a database if there is none. Default: true. If false,
  /// ``DatabaseError/Code/notFound`` is thrown.
  public var createsMissing = true

  /// A checkpoint is taken once the log since the last one has this many times its bytes. More means
  /// less writing, a slower opening and larger files; 0 turns automatic checkpoints off. Default: 0.5. The
  /// article on performance has a table.
  public var checkpointFactor: Double = 0.5

  /// Bytes of log below which no automatic checkpoint is taken. Default: 16 MiB.
  public var checkpointByteMin: UInt64 = 16 << 20

  /// When the data of the newest checkpoint is read. Default: ``Loading/onDemand``.
  public var loading: Loading = .onDemand

  /// How much of the past can be read, beyond what opening needs. Default: ``History/minimal``.
  public var history: History = .minimal

  /// Bytes of memory that the whole tree may take before writes that add to it are refused with
  /// ``DatabaseError/Code/memoryLimit``. Nil: no limit. Default: nil.
  ///
  /// It bounds the data, not only what was read so far: data that is still in the checkpoint counts with the
  /// memory that it will take, which is estimated from 16 samples. The tree can exceed the limit by a 64th, by the
  /// write that reaches it, and by what the estimate is wrong. A database that is over it opens, can be read, and
  /// takes writes that only remove. Snapshots, kept orders and what waits for the disk are not counted.
  public var memoryByteLimit: Int?

  /// Bytes that one write may take in the log before compression; more is refused with
  /// ``DatabaseError/Code/tooLarge``. Default and most: 256 MiB.
  public var writeByteLimit = 256 << 20

  /// How often a database that was opened with `Database.open(following:)` looks for new writes: the time
  /// after which it shows them at the latest. A look is a few system calls. Default: 20 ms; at least 1 ms.
  public var followInterval = Duration.milliseconds(20)

  /// Children in all sort orders together that the database keeps in memory for queries that are read
  /// again and again with `getData`, about 100 bytes each. The second such read of a location by a child's
  /// value keeps the order, which is dropped when it was not used for a minute, or when others need its
  /// room. An order by strings has a copy of those that are longer than 15 bytes, and each 100 bytes of these count
  /// as a child; what is written between two reads counts from the second one on. Default: 1,000,000; 0: none is
  /// kept but those that ``DatabaseQuery/keepSynced(_:)`` declares. These, and the orders of listeners, are
  /// not limited.
  public var queryOrderLimit = 1_000_000

  /// How long a transaction may take from its start until its result is admitted: its waiting for others, and all runs of
  /// its block. One that takes longer fails with ``DatabaseError/Code/timedOut``, is looked for ten times a second, and
  /// writes nothing; transactions at related locations wait until its block has returned. Default: nil, as long as it
  /// needs.
  public var transactionTimeLimit: Duration?

  /// Gets a line for what happens to the database beside reads and writes: how it was opened and what was recovered, a torn
  /// end that was cut off, checkpoints that were taken or failed, a disk that is full or has room again, writing that has
  /// ended, a writer that is followed or is gone, the block of a transaction that takes long. Default: nil.
  ///
  /// It is called on a queue that it shares with ``metrics`` alone, one call at a time, in the order in
  /// which things happened. The database does not wait for it: it may use the database, and wait for it. The last lines before the process ends may not come. If it is
  /// so slow that 1024 calls wait, further lines and timers are left out, and a line says how many;
  /// counters are added up and of a gauge the last value comes, so that sums and levels stay right.
  ///
  /// What it holds lives as long as the database: if it holds the database itself, that is until the end of
  /// the process.
  public var logging: (@Sendable (LogMessage) -> Void)?

  /// Gets figures, as ``logging`` gets lines. Default: nil.
  public var metrics: (@Sendable (Metric) -> Void)?

  /// Gets the errors that have no other receiver: of a write without completion that failed, a listener
  /// without cancel block that could not be registered. Called on ``Database/callbackQueue``.
  /// Default: nil, which writes one line on standard error.
  public var errorHandler: (@Sendable (DatabaseError) -> Void)?

  /// Gets the progress of opening, on the thread that opens, at most once a mebibyte. Default: nil.
  public var progress: (@Sendable (OpeningProgress) -> Void)?

  /// How long writers wait for a transaction that has lost three runs. Default: 1 s.
  package var reservationTimeout = Duration.seconds(1)

  /// How long the block of a transaction may take before the log has a line on it. Default: 10 s.
  package var transactionReportTime = Duration.seconds(10)

  /// The defaults.
  public init() {}

  /// The defaults but for the durability.
  public init(durability: Durability) { self.durability = durability }
}

/// One line of what the database did.
public struct LogMessage: Sendable {
  /// How much it matters.
  public enum Level: String, Sendable {
    /// For finding faults.
    case debug
    /// The ordinary course of things.
    case info
    /// Something was amiss and was dealt with.
    case warning
    /// Something was refused.
    case error
  }

  /// How much it matters.
  public let level: Level
  /// One sentence.
  public let message: String
  /// Details by name.
  public let metadata: [String: String]
}

/// One figure of what the database did.
public struct Metric: Sendable {
  /// How the values of one name go together.
  public enum Kind: String, Sendable {
    /// To be added up.
    case counter
    /// A level; the last one holds.
    case gauge
    /// Seconds that something took.
    case timer
  }

  /// Dotted, lower case.
  public let name: String
  /// How the values of one name go together.
  public let kind: Kind
  /// A count, a level, or seconds.
  public let value: Double
}

/// How far opening has come.
public struct OpeningProgress: Hashable, Sendable {
  /// What is being read.
  public enum Phase: String, Sendable {
    /// The newest checkpoint.
    case checkpoint
    /// The log since.
    case log
  }

  /// What is being read.
  public let phase: Phase
  /// Bytes of this phase that were read.
  public let completedByteCount: UInt64
  /// Bytes of this phase in all.
  public let totalByteCount: UInt64
}

extension DatabaseOptions {
  /// When the data of the newest checkpoint is read and checked.
  public enum Loading: Hashable, Sendable {
    /// When it is used for the first time: a database opens at once, whatever its size.
    ///
    /// Data that is read once stays in memory. If a part of the file turns out to be damaged, the reads,
    /// writes and listeners that need it fail with ``DatabaseError/Code/corrupt``, which names file and offset;
    /// all others go on, no checkpoint is taken any more, and the files that ``whole`` needs stay.
    case onDemand
    /// All of it while the database is opened, on all processors. If a part is damaged, the older checkpoint
    /// serves, with more of the log.
    case whole
  }

  /// The engine's options. `hub` gets the failures of writes without completion.
  func engineOptions(reportingTo hub: EventHub) -> EngineOptions {
    var engine = EngineOptions()
    engine.durability = durability.engineValue
    engine.checkpointFactor = checkpointFactor.isFinite ? max(0, checkpointFactor) : 0
    engine.checkpointByteMin = checkpointByteMin
    engine.history = history.engineValue
    engine.loading = loading == .whole ? .whole : .onDemand
    engine.reservationTimeout = reservationTimeout
    engine.followInterval = max(followInterval, .milliseconds(1))
    engine.memoryByteLimit = memoryByteLimit.map { max(0, $0) }
    engine.writeByteLimit = min(max(0, writeByteLimit), engine.writeByteLimit)
    engine.log = { [logging] event in
      if let logging {
        let level: LogMessage.Level =
          switch event.level {
          case .debug: .debug
          case .info: .info
          case .warning: .warning
          case .error: .error
          }
        logging(LogMessage(level: level, message: event.message, metadata: event.metadata))
      }
      DatabaseSettings.log(event)
    }
    if let metrics {
      engine.metrics = { metric in
        let kind: Metric.Kind =
          switch metric.kind {
          case .counter: .counter
          case .gauge: .gauge
          case .timer: .timer
          }
        metrics(Metric(name: metric.name, kind: kind, value: metric.value))
      }
    }
    engine.unreportedFailure = { error, _ in hub.report(DatabaseError(error)) }
    return engine
  }

  var engineProgress: (@Sendable (RecoveryProgress) -> Void)? {
    guard let progress else { return nil }
    return { step in
      progress(
        OpeningProgress(
          phase: step.phase == .checkpoint ? .checkpoint : .log,
          completedByteCount: step.completedByteCount, totalByteCount: step.totalByteCount))
    }
  }
}
