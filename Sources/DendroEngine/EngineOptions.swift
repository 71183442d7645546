package import DendroStorage

/// How an engine behaves. Every field has a default that loses nothing.
package struct EngineOptions: Sendable {
  /// What an acknowledgement promises. Default: `everyCommit`.
  package var durability: Durability = .everyCommit

  /// A checkpoint is taken once the log since the last one has more bytes than `checkpointFactor`
  /// times that checkpoint's file, and at least `checkpointByteMin`. A larger factor writes less and
  /// takes longer to open. 0 turns automatic checkpoints off. Default: 0.5.
  package var checkpointFactor: Double = 0.5
  /// Bytes of log below which no automatic checkpoint is taken. Default: 16 MiB.
  package var checkpointByteMin: UInt64 = 16 << 20

  /// Raw bytes after which a chunk of a checkpoint is closed. Default: 128 KiB.
  package var checkpointChunkByteLimit = 128 << 10

  /// When the pages of the newest checkpoint are read. Default: on demand.
  package var loading = Loading.onDemand

  /// Bytes after which a new segment begins. Default: 64 MiB.
  package var segmentByteLimit: UInt64 = 64 << 20

  /// Which segments and checkpoints are kept that opening no longer needs. Default: none.
  package var history = HistoryRetention.none

  /// Bytes of one write as it stands in the log, uncompressed. Default and most: 256 MiB.
  package var writeByteLimit = 256 << 20

  /// Bytes of memory that the tree may take before writes that add to it are refused; nil: no limit.
  /// The measure is an estimate from page sizes. Default: nil.
  package var memoryByteLimit: Int?

  /// Bytes of memory that admitted writes take until the disk has them, their completions included, above
  /// which a writer waits: on its thread, or, if it awaits its write, suspended. A batch has at most these
  /// and one write more, beside what completions and blocks of transactions write, which does not wait. Default: 64 MiB.
  package var stallByteLimit = 64 << 20

  /// How long a batch without completions grows before it is committed. Otherwise the commit thread would be
  /// woken for each write, and delay the writer. A reader in another process and `changes(since:)` see such
  /// writes that much later. Default: 500 µs.
  package var commitDelay = Duration.microseconds(500)

  /// How long writers wait for a transaction that has lost three runs, in all its runs together. It should be
  /// longer than a run of a block takes, but short, since a block that waits for such a writer waits as
  /// long. Default: 1 s.
  package var reservationTimeout = Duration.seconds(1)

  /// How often an engine that follows another process's writer looks at the log. Default: 20 ms.
  package var followInterval = Duration.milliseconds(20)

  /// Which thread waits for the disk. Default: one of the engine's own.
  package var execution: Execution = .thread

  /// Gets log events, on a queue of its own, one call at a time with `metrics`, in order. The engine does
  /// not wait for it, so that it may call the engine. If it is behind by 1024 calls, events and timers
  /// are left out, and an event says how many; counters are added up and of gauges the last one is kept, so
  /// that sums and levels stay right. Default: nil.
  package var log: (@Sendable (LogEvent) -> Void)?
  /// Gets metrics, as `log` gets events. Default: nil.
  package var metrics: (@Sendable (Metric) -> Void)?
  /// Levels of what stands above the engine, which are asked for with each batch and go to `metrics`. Called without a
  /// lock, on the thread of the batch: it may not wait. Default: nil.
  package var levels: (@Sendable () -> [Metric])?
  /// Gets the failures of writes without a completion. Default: nil.
  package var unreportedFailure: (@Sendable (EngineError, LogSequenceNumber) -> Void)?

  package init() {}

  package enum Loading: Hashable, Sendable {
    /// When they are touched for the first time: opening takes the same time whatever the size of the data. A
    /// page that turns out to be damaged fails the reads and writes that need it.
    case onDemand
    /// All at opening: if one is damaged, the older checkpoint serves.
    case whole
  }

  package enum Execution: Hashable, Sendable {
    /// A thread of the engine's own waits for the disk.
    case thread
    /// The caller does the disk's work by `Engine.pump()`: for simulations, which must be repeatable.
    case inline
  }
}

/// One line of what the engine did.
package struct LogEvent: Sendable {
  package enum Level: String, Sendable { case debug, info, warning, error }
  package var level: Level
  package var message: String
  package var metadata: [String: String]
  /// Nil for what is no failure.
  package var failure: FailureKind?

  package init(
    _ level: Level, _ message: String, _ metadata: [String: String] = [:],
    failure: FailureKind? = nil
  ) {
    self.level = level
    self.message = message
    self.metadata = metadata
    self.failure = failure
  }
}

/// One figure.
package struct Metric: Sendable {
  package enum Kind: String, Sendable { case counter, gauge, timer }
  /// Dotted lower-case name, such as `dendro.commit.writes`.
  package var name: String
  package var kind: Kind
  /// A count for counters, a level for gauges, seconds for timers.
  package var value: Double

  package init(_ name: String, _ kind: Kind, _ value: Double) {
    self.name = name
    self.kind = kind
    self.value = value
  }
}
