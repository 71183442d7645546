package import DendroTree
import Synchronization

/// What a transaction's block has decided on.
package struct TransactionDecision {
  /// The set of what is to be at the path, or its removal; nil where the block gives up.
  package var draft: Draft?
  /// Told what is at the path then, in the order of the writes and once it is as durable as the options
  /// ask; or why it was taken back. Where the block gives up it is told what the block was given, once
  /// that is durable. On the engine's thread: it may not wait.
  package var completion: @Sendable (Result<Node, EngineError>) -> Void

  package init(
    _ draft: Draft?, completion: @escaping @Sendable (Result<Node, EngineError>) -> Void
  ) {
    self.draft = draft
    self.completion = completion
  }
}

extension Engine {
  /// Lets `decide` make of the node at `path` what is to be there, and admits that only if the node is
  /// still the same then; otherwise `decide` is called again, with what is there now.
  ///
  /// `decide` is called on the calling thread and under no lock. What it writes itself is admitted after
  /// the transaction. After three lost runs, writes of other threads at `path`, above or below wait for
  /// the transaction, for `EngineOptions.reservationPatience` in all: one that `decide` itself waits for
  /// gets through then, and later ones do not wait.
  ///
  /// One at a time: the caller sees to that. It waits where the backlog is over its limit.
  ///
  /// - Parameters:
  ///   - path: what is read and written.
  ///   - refused: told in place of the decision's completion where no write is admitted (closed, full,
  ///     read-only, …), and after 25 runs, `.overtaken`.
  ///   - decide: its draft is validated by the caller.
  package func transact(
    at path: Path, refused: @escaping @Sendable (EngineError) -> Void,
    decide: (_ input: Node) -> TransactionDecision
  ) {
    if let refusal { return refused(refusal) }
    pipeline.transact(at: path, refused: refused, decide: decide)
  }

  /// Whether a transaction's block is running on the calling thread.
  package var isInTransaction: Bool { pipeline.withAdmission { $0.transaction?.isHere ?? false } }

  /// How many threads writes hold at this moment, since they wait for the disk or for a transaction.
  package var heldThreadCount: Int { pipeline.heldThreadCount }

  /// How many writers wait for a transaction at this moment.
  package var waitingWriterCount: Int { pipeline.waitingWriterCount.load(ordering: .relaxed) }
}
