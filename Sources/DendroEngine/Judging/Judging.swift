import DendroTree

/// The judging of one write until it is admitted: by one caller, which has it judged without the lock and offers it under the lock.
///
/// A class, since a part of `PermittedWaits` is copied with each look at it.
final class Judging {
  let judge: any WriteJudge
  private var state = State()

  private struct State {
    /// How often the write was judged.
    var count = 0
    var judgement = Judgement(isAllowed: false, .onlyThere)
    /// The tree that was judged; empty once it is not needed.
    var root = Node.empty
    var time: Int64 = 0
  }

  init(_ judge: any WriteJudge) { self.judge = judge }

  /// The time that was judged, in milliseconds since 1970; nil before the first judgement.
  var time: Int64? { state.count > 0 ? state.time : nil }

  /// Whether other writes have to wait until this one is judged and admitted.
  var needsReservation: Bool { state.count >= Self.countWithoutLock && !judge.isBounded }

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
      JudgedState(head, write, time: time, wantsValidity: state.count > 0))
    note(judgement, head.node, time)
    return judgement.isAllowed ? nil : .denied
  }

  private func note(_ judgement: Judgement, _ root: Node, _ time: Int64) {
    state = State(count: state.count + 1, judgement: judgement, root: root, time: time)
  }

  // MARK: Admission

  /// What the last judgement is worth for the head.
  enum Standing {
    /// It holds: the write is admitted at this time.
    case holds(time: Int64)
    /// The write is judged on the head, so that no other one comes between.
    case isJudgedUnderLock
    /// It is judged without the lock.
    case isJudgedBefore
  }

  /// Looks whether the last judgement is one of the head too. If so, its tree is forgotten if it is the head: admission
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
  func standing(
    of write: EncodedWrite, on root: Node, isPartial: Bool, lastTime: Int64
  ) -> Standing {
    if let time = hold(state: &state, write, on: root, isPartial, lastTime) {
      return .holds(time: time)
    }
    return state.count >= Self.countWithoutLock && judge.isBounded && !isPartial
      ? .isJudgedUnderLock : .isJudgedBefore
  }

  /// - Returns: the time of the judgement, if it holds.
  private func hold(
    state: inout State, _ write: EncodedWrite, on root: Node, _ isPartial: Bool, _ lastTime: Int64
  ) -> Int64? {
    guard state.count > 0, judge.isCurrent else { return nil }
    if state.judgement.dependsOnTime, lastTime > state.time { return nil }
    if root.isIdentical(to: state.root) {
      state.root = .empty
      return state.time
    }
    switch state.judgement.validity {
    case .always: return state.time
    case .onlyThere: return nil
    case .wherever(let isSame):
      let time = max(lastTime, state.time)
      return !isPartial && isSame(root) { root.applying(write, time: time) } ? state.time : nil
    }
  }

  /// Judges the write on the head, under the lock.
  ///
  /// - Parameter root: all of its pages are in memory.
  /// - Returns: why it is refused.
  func judgeUnderLock(_ write: EncodedWrite, on root: Node, time: Int64) -> EngineError? {
    let judgement = judge.judge(
      JudgedState(HeadNode(root), write, time: time, wantsValidity: true))
    note(judgement, .empty, time)
    return judgement.isAllowed ? nil : .denied
  }
}
