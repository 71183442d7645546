package import DendroTree

/// The calls of several threads to one database, their results and times, and the log.
///
/// Times are the numbers of one counter that all threads draw from, so that one is smaller than another
/// exactly if it was earlier.
package struct ObservedHistory: Sendable {
  /// Where calls meet.
  package enum Place: String, CaseIterable, Sendable {
    case a = "pair/a"
    case b = "pair/b"
    case count
    case bank
    case pair
    case root = ""

    package var path: Path { rawValue.isEmpty ? .root : Path(rawValue) }
  }

  package enum Action: Equatable, Sendable {
    /// The call's number becomes what is there.
    case set(Place)
    /// The same at several places at once, and a mark with the call's number.
    case update([Place])
    /// Removes what is there, and leaves a mark.
    case clear(Place)
    /// Adds the call's number to the count.
    case add
    /// Makes something of what is there, and of the call's number.
    case transact(Place)
    /// A transaction that gives up.
    case abort(Place)
    /// The data at some moment of the call, returned later.
    case read(Place)
    /// The data at some moment before it was returned.
    case observe(Place)

    package var isTransaction: Bool { if case .transact = self { true } else { false } }
    /// Whether it only reads.
    package var isRead: Bool {
      switch self {
      case .read, .observe, .abort: true
      default: false
      }
    }
  }

  package struct Call: Sendable {
    /// From 1 on; no two have the same.
    package var number: Int
    package var action: Action
    package var began: Int
    /// When the call returned, whether it was answered yet or not.
    package var returned: Int
    /// When its completion was called, or the event came.
    package var answered: Int
    /// What a read showed; what a transaction's last run was given.
    package var shown: String?

    package init(
      _ number: Int, _ action: Action, began: Int, returned: Int, answered: Int,
      shown: String? = nil
    ) {
      self.number = number
      self.action = action
      self.began = began
      self.returned = returned
      self.answered = answered
      self.shown = shown
    }
  }

  package struct Listener: Sendable {
    package enum Kind: Sendable { case value, children }

    package struct Event: Sendable {
      package var time: Int
      /// The child's; nil for an event of the whole value.
      package var key: String?
      /// What is there now.
      package var text: String

      package init(_ time: Int, _ text: String, key: String? = nil) {
        self.time = time
        self.key = key
        self.text = text
      }
    }

    package var place: Place
    package var kind: Kind
    package var began: Int
    /// When it was registered, for all its kinds of events.
    package var returned: Int
    /// When its removal began; nil if it listened to the end.
    package var ended: Int?
    /// When its removal had returned.
    package var removed: Int?
    package var events: [Event]

    package init(
      _ place: Place, _ kind: Kind, began: Int, returned: Int, ended: Int? = nil,
      events: [Event] = []
    ) {
      self.place = place
      self.kind = kind
      self.began = began
      self.returned = returned
      self.ended = ended
      self.events = events
    }
  }

  package var calls: [Call] = []
  package var listeners: [Listener] = []
  /// Every write, in the order of its number.
  package var log: [Write] = []
  /// The tree at the end.
  package var tree = Node.empty

  package init() {}
}
