package import DendroEngine
import DendroStorage
public import Foundation

/// How a database behaves. Every field has a default, and the defaults lose nothing.
public struct DatabaseOptions: Sendable {
  /// What an acknowledgement promises. Default: ``Database/Durability/everyCommit``.
  public var durability: Database.Durability = .everyCommit

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

  /// Locations whose data a database of `Database.open(at:syncingWith:)` keeps in step with the server all the time, without a
  /// listener: once the server has said them, reads below them never wait for the network. Each is a path as
  /// ``DatabaseReference/child(_:)`` takes it; "/" is all. Default: none.
  public var mirror: [String] = []

  /// How long a transaction may take from its start until its result is admitted: its waiting for others, and all runs of
  /// its block. Steps of `Database.migrate(versionAt:_:)` have no limit. One that takes longer fails with ``DatabaseError/Code/timedOut``, is looked for ten times a second, and
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
  public var logging: (@Sendable (Database.LogMessage) -> Void)?

  /// Gets figures, as ``logging`` gets lines. Default: nil.
  public var metrics: (@Sendable (Database.Metric) -> Void)?

  /// Gets the errors that have no other receiver: of a write without completion that failed, a listener
  /// without cancel block that could not be registered. Called on ``Database/callbackQueue``.
  /// Default: nil, which writes one line on standard error.
  public var errorHandler: (@Sendable (DatabaseError) -> Void)?

  /// Gets the progress of opening, on the thread that opens, at most once a mebibyte. Default: nil.
  public var progress: (@Sendable (Database.OpeningProgress) -> Void)?

  /// What time it is. It dates the writes in the history, is what ``ServerValue/timestamp()`` becomes, and begins push ids.
  /// For tests that set it. Default: nil, the clock of the system.
  ///
  /// It is called on the threads that write, while other writers wait: it must return at once, and must not use the
  /// database. A time that is no number counts as 0, the beginning of 1970.
  public var clock: (@Sendable () -> Date)?

  /// Makes the keys that `childByAutoId()` and `addChild(from:)` use. For tests that set them. Default: nil, the push ids of
  /// Firebase.
  ///
  /// A key that paths cannot hold makes a reference that carries the error.
  public var pushID: (@Sendable () -> String)?

  /// How long writers wait for a transaction that has lost three runs. Default: 1 s.
  package var reservationTimeout = Duration.seconds(1)

  /// How long the block of a transaction may take before the log has a line on it. Default: 10 s.
  package var transactionReportTime = Duration.seconds(10)

  /// The defaults.
  public init() {}

  /// The defaults but for the durability.
  public init(durability: Database.Durability) { self.durability = durability }
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

  /// Writes lines into the log.
  package var log: @Sendable (LogEvent) -> Void {
    { [logging] event in
      if let logging {
        let level: Database.LogMessage.Level =
          switch event.level {
          case .debug: .debug
          case .info: .info
          case .warning: .warning
          case .error: .error
          }
        logging(Database.LogMessage(level: level, message: event.message, metadata: event.metadata))
      }
      DatabaseSettings.log(event)
    }
  }

  /// The engine's options. `hub` gets the failures of writes without completion; its backlog and the orders are among the
  /// figures.
  func engineOptions(reportingTo hub: EventHub, _ orders: OrderCache) -> EngineOptions {
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
    engine.log = log
    if let metrics {
      engine.metrics = { metric in
        let kind: Database.Metric.Kind =
          switch metric.kind {
          case .counter: .counter
          case .gauge: .gauge
          case .timer: .timer
          }
        metrics(Database.Metric(name: metric.name, kind: kind, value: metric.value))
      }
      engine.levels = {
        [
          DendroEngine.Metric("dendro.events.waiting", .gauge, Double(hub.waitingCount)),
          DendroEngine.Metric("dendro.orders.children", .gauge, Double(orders.keptChildCount)),
        ]
      }
    }
    engine.unreportedFailure = { error, _ in hub.report(DatabaseError(error)) }
    return engine
  }

  func makeOrderCache() -> OrderCache {
    OrderCache(limits: .init(childCount: max(0, queryOrderLimit)))
  }

  var engineProgress: (@Sendable (RecoveryProgress) -> Void)? {
    guard let progress else { return nil }
    return { step in
      progress(
        Database.OpeningProgress(
          phase: step.phase == .checkpoint ? .checkpoint : .log,
          completedByteCount: step.completedByteCount, totalByteCount: step.totalByteCount))
    }
  }
}
