/// Messages of a client that wait to be handled, the oldest first.
struct Inbox: Sendable {
  enum Item: Sendable {
    case message([UInt8])
    /// A message that is over the limit: the number of its request.
    case tooLarge(Int64)

    /// With what it takes in memory beside its bytes: a message may be empty.
    var byteCount: Int { if case .message(let bytes) = self { bytes.count + 64 } else { 64 } }
  }

  private var items: [Item] = []
  private var head = 0
  private(set) var byteCount = 0

  var isEmpty: Bool { head == items.count }

  mutating func append(_ item: Item) {
    items.append(item)
    byteCount += item.byteCount
  }

  mutating func popFirst() -> Item? {
    guard head < items.count else { return nil }
    let item = items[head]
    items[head] = .tooLarge(0)
    head += 1
    byteCount -= item.byteCount
    if head == items.count || head >= 1024 {
      items.removeFirst(head)
      head = 0
    }
    return item
  }
}
