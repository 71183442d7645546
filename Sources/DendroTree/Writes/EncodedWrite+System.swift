/// Who made a write: a client, by its id, and the number that it gave the write.
package struct WriteOrigin: Sendable, Hashable {
  /// The most bytes of an id.
  package static let clientByteCountMax = 255

  package var client: [UInt8]
  package var number: UInt64

  package init(client: [UInt8], number: UInt64) {
    precondition(
      client.count <= Self.clientByteCountMax, "the id of a client has 255 bytes at most")
    self.client = client
    self.number = number
  }
}

extension EncodedWrite {
  /// Makes one write of a change of the data and one of the second root: both take effect, or neither does.
  ///
  /// - Parameters:
  ///   - data: the change of the data; nil for none. It may have server values.
  ///   - system: the change of the second root; nil for none. Its leaves may be bytes. It has no server values: those
  ///     of a write that is kept there are within its bytes.
  ///   - origin: who made the write, to be kept in the log.
  package convenience init(
    _ data: EncodedWrite?, system: EncodedWrite?, origin: WriteOrigin? = nil
  ) {
    precondition(
      system.map { !$0.facts.hasServerValues && $0.system == nil } ?? true,
      "a change of the second root is one, and has its values")
    let data = data ?? .nothing
    self.init(
      data.kind, at: data.path, body: data.body, trees: data.trees, facts: data.facts,
      system: system, origin: origin)
  }

  /// A write that changes nothing: an update without entries.
  package static var nothing: EncodedWrite {
    var facts = WriteFacts()
    facts.entryCount = 0
    let body = PayloadBuffer(capacity: 16)
    body.appendVarint(0)
    return EncodedWrite(.update, at: .root, body: body, trees: [], facts: facts)
  }

  /// Whether there is more to it than a change of the data.
  var hasExtras: Bool { system != nil || origin != nil }
}

extension WriteView {
  /// The write with its change of the second root and its origin; nil if it has neither.
  package var extras: EncodedWrite? {
    owner.flatMap { $0._withUnsafeGuaranteedRef { $0.hasExtras ? $0 : nil } }
  }

  /// What is known of the changes of both roots together: their entries, and how many of these remove.
  package var factsOfAll: WriteFacts { facts(with: extras) }

  /// `factsOfAll` of a write with these extras.
  package func facts(with extras: EncodedWrite?) -> WriteFacts {
    guard let change = extras?.system else { return facts }
    var facts = facts
    facts.entryCount += change.facts.entryCount
    facts.removalCount += change.facts.removalCount
    return facts
  }

  /// Whether it changes nothing of the data.
  package var isNothing: Bool { kind == .update && facts.entryCount == 0 }
}
