package import DendroTree
import Synchronization

/// The decision of one run of a transaction's block.
package struct TransactionDecision {
  /// Sets or removes the node at the path; nil if the block aborts.
  package var draft: Draft?
  /// Asked whether the decision may be written; nil if everybody may. The completion gets `.denied` if it may not.
  package var judge: (any WriteJudge)?
  /// What the same write changes in the second root; nil if nothing, and if the block aborts.
  package var system: EncodedWrite?
  /// Who makes the write, if that is kept in the log.
  package var origin: WriteOrigin?
  /// Receives the node at the path after the write, in the order of the writes and once it is as durable as
  /// the options ask; or why the write failed. If the block aborts, it receives the block's input once
  /// that is durable. Called as all completions are: it may not wait.
  package var completion: @Sendable (Result<Node, EngineError>) -> Void

  package init(
    _ draft: Draft?, judge: (any WriteJudge)? = nil, system: EncodedWrite? = nil,
    origin: WriteOrigin? = nil,
    completion: @escaping @Sendable (Result<Node, EngineError>) -> Void
  ) {
    self.draft = draft
    self.judge = judge
    self.system = system
    self.origin = origin
    self.completion = completion
  }
}

extension Engine {
  /// How often a transaction runs before it is given up.
  package static let transactionRunLimit = TransactionRunner.runLimit

  /// Calls `decide` with the node at `path`, and admits its decision only if the node is still the same;
  /// otherwise calls it again with the new node.
  ///
  /// `decide` is called on the calling thread and under no lock. Writes that it makes itself are admitted
  /// after the transaction. After three lost runs, writes of other threads at `path`, above or below wait
  /// for the transaction, for `EngineOptions.reservationTimeout` in all: one that `decide` itself waits for
  /// is admitted then, and later ones do not wait.
  ///
  /// Several may run at the same time, on different threads; those at related locations cost each other runs. The
  /// caller waits for the disk as `submit` does.
  ///
  /// - Parameters:
  ///   - path: the location that is read and written.
  ///   - refused: called in place of the decision's completion if no write is admitted (closed, full,
  ///     read-only, …), and with `.overtaken` after 25 runs.
  ///   - begun: called once the disk is not waited for any more, before data are read.
  ///   - decide: its draft is validated by the caller.
  package func transact(
    at path: Path, refused: @escaping @Sendable (EngineError) -> Void, begun: () -> Void = {},
    decide: (_ input: Node) -> TransactionDecision
  ) {
    if let refusal { return refused(refusal) }
    TransactionRunner(pipeline: pipeline, path: path, refused: refused).run(begun, decide)
  }

  /// Has a line logged, in the order of the engine's own.
  package func record(_ event: LogEvent) { pipeline.instrumentation.record(event) }

  /// Whether a transaction's block is running on the calling thread.
  package var isInTransaction: Bool {
    pipeline.withAdmission { $0.transactions.ofThisThread != nil }
  }

  /// Threads that are blocked in a write at this moment, waiting for the disk or for a transaction.
  package var heldThreadCount: Int { pipeline.heldThreadCount }

  /// Writers that wait for a transaction at this moment.
  package var waitingWriterCount: Int { pipeline.waitingWriterCount.load(ordering: .relaxed) }
}
