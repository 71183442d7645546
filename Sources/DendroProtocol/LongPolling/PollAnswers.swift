/// The answers to the polls of one client: they are numbered, and a poll that comes again gets the same one.
///
/// A browser sends a request again by itself if its connection breaks before the answer.
package struct PollAnswers: Sendable {
  /// What a poll gets.
  package enum Arrival: Sendable {
    /// An answer that is still to be made.
    case new
    /// The answer that was made for it before.
    case again(AnswerText)
    /// Its answer is not kept any more: the client has lost messages.
    case forgotten
  }

  /// The number of the next answer. The start of the session has answer 0.
  private var next = 1
  private var newest: Int64 = -1
  /// The polls below the newest that have not come yet, ascending. While one is on its way, any number of others may be answered
  /// over the client's second connection.
  private var missing: [Int64] = []
  /// Those that have come. The connection holds a few of them.
  private var unanswered: Set<Int64> = []
  private static let missingCountMax = 64
  /// The last answers by the numbers of their polls; without the text if it was too much to keep.
  private var kept: [(serial: Int64, text: AnswerText?)] = []
  /// What the answers that are kept take, in bytes.
  package private(set) var keptByteCount = 0
  private let byteLimit: Int
  /// A client has two polls under way, and gives up on one that takes too long.
  private static let keptCountMax = 8

  /// - Parameter byteLimit: of the answers that are kept, apart from the last.
  package init(byteLimit: Int) { self.byteLimit = byteLimit }

  package mutating func arrival(_ serial: Int64) -> Arrival {
    if let found = kept.first(where: { $0.serial == serial }) {
      return found.text.map { .again($0) } ?? .forgotten
    }
    if serial > newest {
      missing += max(newest + 1, serial - Int64(Self.missingCountMax))..<serial
      missing.removeFirst(max(0, missing.count - Self.missingCountMax))
      newest = serial
      unanswered.insert(serial)
      return .new
    }
    if let index = missing.firstIndex(of: serial) {
      missing.remove(at: index)
      unanswered.insert(serial)
      return .new
    }
    // It has come again.
    return unanswered.contains(serial) ? .new : .forgotten
  }

  /// Makes the answer to a poll.
  ///
  /// - Parameters:
  ///   - serial: of the poll.
  ///   - messages: in their order.
  ///   - closes: whether it is the last one, after which the client leaves.
  package mutating func answer(
    _ serial: Int64, _ messages: [AnswerText], closes: Bool = false
  ) -> AnswerText {
    var text = PollText.messages(messages, number: next)
    if closes { text.append(PollText.close(after: next)) }
    next += 1
    unanswered.remove(serial)
    kept.append((serial, text))
    keptByteCount += text.byteCount
    for index in kept.indices where keptByteCount > byteLimit && kept[index].serial != serial {
      forget(index)
    }
    if kept.count > Self.keptCountMax {
      forget(0)
      kept.removeFirst()
    }
    return text
  }

  private mutating func forget(_ index: Int) {
    keptByteCount -= kept[index].text?.byteCount ?? 0
    kept[index].text = nil
  }
}
