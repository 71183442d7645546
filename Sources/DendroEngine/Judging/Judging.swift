import DendroTree

/// The judging of one write until it is admitted: by one caller, which has it judged without the lock and offers it under the lock.
///
/// A class, since a part of `PermittedWaits` is copied with each look at it.
final class Judging {
  let judge: any WriteJudge
  private var state = State()

  fileprivate struct State {
    /// How often the write was judged.
    var count = 0
    var judgement = Judgement(isAllowed: false, .onlyThere)
    /// The tree that was judged; nil once it is not needed.
    var root: Node?
    var time: Int64 = 0
    /// A tree that was judged before, until the caller is done: its pages may have no other owner, and to free them may take
    /// long.
    var superseded: Node?

    mutating func note(_ judgement: Judgement, _ root: Node?, _ time: Int64) {
      count += 1
      self.judgement = judgement
      self.root = root
      self.time = time
    }
  }

  init(_ judge: any WriteJudge) { self.judge = judge }

  /// The time that was judged, in milliseconds since 1970; nil before the first judgement.
  var time: Int64? { state.count > 0 ? state.time : nil }

  /// Whether other writes have to wait until this one is judged and admitted.
  var needsReservation: Bool { state.count >= Self.countWithoutLock && !judge.isBounded }

  /// Whether the next judgement may have to hold for other states too: for the third one also if comparing takes long, since
  /// otherwise a write might be judged for ever.
  private var wantsValidity: Bool {
    state.count > 0 && (judge.comparesQuickly || state.count >= Self.countWithoutLock)
  }

  private static let countWithoutLock = 2

  // MARK: Judging

  /// Judges the write without the lock.
  ///
  /// - Returns: why it is refused.
  func judge(
    _ write: EncodedWrite, on head: HeadNode, time: Int64
  ) -> EngineError? {
    do {
      return try head.reading { _, _ in judge(write, at: head, time) }
    } catch let error as EngineError {
      return error
    } catch {
      preconditionFailure("reading pages fails with an error of the engine: \(error)")
    }
  }

  private func judge(
    _ write: EncodedWrite, at head: HeadNode, _ time: Int64
  ) -> EngineError? {
    let judgement = judge.judge(
      JudgedState(head, write, time: time, wantsValidity: wantsValidity))
    state.note(judgement, head.node, time)
    return judgement.isAllowed ? nil : .denied
  }

  // MARK: Admission

  /// What admission does with a write that is judged.
  enum Step {
    /// The last judgement holds for the head: the write is admitted at this time.
    case admit(time: Int64)
    /// The write is judged on the head, so that no other one comes between.
    case judgeUnderLock
    /// It is judged without the lock.
    case judgeFirst
  }

  /// Looks whether the last judgement is one of the head too. If it was made on the head, its tree is let go: admission
  /// changes a page in place only if no other tree refers to the page.
  ///
  /// An older tree stays until the caller is done, without the lock: its pages may have no other owner, and to free them may
  /// take long.
  ///
  /// - Parameters:
  ///   - write: what was judged.
  ///   - root: the head.
  ///   - isPartial: whether some of its pages are not in memory.
  ///   - lastTime: of the last admitted write.
  func nextStep(
    for write: EncodedWrite, on root: Node, isPartial: Bool, lastTime: Int64
  ) -> Step {
    if let time = state.release(write, for: root, isPartial, lastTime, judge) {
      return .admit(time: time)
    }
    return state.count >= Self.countWithoutLock && judge.isBounded && !isPartial
      ? .judgeUnderLock : .judgeFirst
  }

  /// Judges the write on the head, under the lock.
  ///
  /// - Parameter root: all of its pages are in memory.
  /// - Returns: why it is refused.
  func judgeUnderLock(_ write: EncodedWrite, on root: Node, time: Int64) -> EngineError? {
    let judgement = judge.judge(
      JudgedState(HeadNode(root), write, time: time, wantsValidity: true))
    if let root = state.root { state.superseded = root }
    state.note(judgement, nil, time)
    return judgement.isAllowed ? nil : .denied
  }
}

extension Judging.State {
  /// - Returns: the time of the judgement, if it holds for the head.
  fileprivate mutating func release(
    _ write: EncodedWrite, for head: Node, _ isPartial: Bool, _ lastTime: Int64,
    _ judge: any WriteJudge
  ) -> Int64? {
    guard count > 0, judge.isCurrent else { return nil }
    if judgement.dependsOnTime, lastTime > time { return nil }
    if let root, head.isIdentical(to: root) {
      self.root = nil
      return time
    }
    switch judgement.validity {
    case .always: return time
    case .onlyThere: return nil
    case .wherever(let isSame):
      let latest = max(lastTime, time)
      return !isPartial && isSame(head) { head.applying(write, time: latest) } ? time : nil
    }
  }
}
