import DendroTree

// The last write of an engine, and its end.
extension CommitPipeline {
  /// Admits `last` and no write after it. `completion` is called once every write is on the disk and the
  /// directory is free. Later calls have no effect.
  ///
  /// Running transactions will be refused. The writes that their blocks have made until now are submitted
  /// before `last`.
  func requestClose(writing last: EncodedWrite?, _ completion: @escaping Completion) {
    for writes in withAdmission({ $0.transactions.writes }) { submit(writes) }
    beginClosing(writing: last, completion)
  }

  /// Closes once the block's writes are submitted, which a completion may not do: another thread may do it, and wait for
  /// the turn that calls the completion.
  private func beginClosing(writing last: EncodedWrite?, _ completion: @escaping Completion) {
    var hasBegun = false
    let begin = { (admission: inout Admission) in
      hasBegun = admission.beginClosing(completion)
    }
    if let last {
      var waits = PermittedWaits(disk: false, transaction: false)
      switch settle(last, nil, &waits, then: begin) {
      case nil: break
      case .secondRoot:
        return requestSecondRoot { [self] result in
          if case .failure(let error) = result { report(error, nil) }
          beginClosing(writing: (try? result.get()).map { _ in last }, completion)
        }
      case .disk, .transaction: preconditionFailure("nothing was permitted to be waited for")
      }
    } else {
      withAdmission(begin)
    }
    if hasBegun { stall.end() } else { completion(.success(nil)) }
  }
}
