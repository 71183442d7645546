import DendroTree

/// The judging of one write until it is admitted: by one caller, which has it judged without the lock and offers it under the lock.
///
/// A class, since a part of `PermittedWaits` is copied with each look at it.
final class Judging {
  let judge: any WriteJudge
  private var last: Last?
  /// How often the write was judged.
  private(set) var count = 0

  private struct Last {
    let judgement: Judgement
    var root: Node
    let time: Int64
  }

  init(_ judge: any WriteJudge) { self.judge = judge }

  /// The time that was judged, in milliseconds since 1970; nil before the first judgement.
  var time: Int64? { last?.time }

  /// Whether the next judgement is made under the admission lock, so that no other write comes between.
  var isUnderLock: Bool { count >= Self.countWithoutLock && judge.isBounded }

  /// Whether other writes have to wait until this one is judged and admitted.
  var needsReservation: Bool { count >= Self.countWithoutLock && !judge.isBounded }

  private static let countWithoutLock = 2

  /// Forgets the tree that was judged, if it is the head. Admission calls it once the judgement holds: it changes a page in
  /// place only if no other tree refers to the page.
  ///
  /// An older tree stays until the caller is done, without the lock: its pages may have no other owner, and to free them may
  /// take long.
  func releaseState(if root: Node) {
    if let last, last.root.isIdentical(to: root) { self.last?.root = .empty }
  }

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

  /// Judges the write on a tree whose pages are in memory.
  ///
  /// - Returns: why it is refused.
  func judge(_ write: EncodedWrite, on root: Node, time: Int64) -> EngineError? {
    judge(write, at: HeadNode(root), time)
  }

  private func judge(
    _ write: EncodedWrite, at head: HeadNode, _ time: Int64
  ) -> EngineError? {
    let judgement = judge.judge(JudgedState(head, write, time: time, wantsValidity: count > 0))
    count += 1
    last = Last(judgement: judgement, root: head.node, time: time)
    return judgement.isAllowed ? nil : .denied
  }

  /// Whether the last judgement is one of this state too.
  ///
  /// - Parameters:
  ///   - write: what was judged.
  ///   - root: the head.
  ///   - isPartial: whether some of its pages are not in memory.
  ///   - lastTime: of the last admitted write.
  func holds(
    for write: EncodedWrite, on root: Node, isPartial: Bool, lastTime: Int64
  ) -> Bool {
    guard let last, judge.isCurrent else { return false }
    if last.judgement.dependsOnTime, lastTime > last.time { return false }
    if root.isIdentical(to: last.root) { return true }
    switch last.judgement.validity {
    case .always: return true
    case .onlyThere: return false
    case .wherever(let isSame):
      return !isPartial && isSame(root) { root.applying(write, time: max(lastTime, last.time)) }
    }
  }
}
