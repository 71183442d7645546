package import DendroTree

/// A write of a client: what it is to the server, and what listeners see until the server has answered.
package struct SyncWrite: Sendable {
  let pending: PendingWrites.Write
  let draft: Draft
  /// When it is made.
  let time: Int64

  /// - Parameters:
  ///   - draft: it keeps the rules that `Write.validate()` checks.
  ///   - time: the server's, in milliseconds since 1970, as far as the client knows it.
  ///   - tree: server values show as what they make of what is known in it.
  ///   - estimate: what it shows in place of that.
  /// - Complexity: O(size of the write).
  package init(_ draft: Draft, time: Int64, over tree: SyncedTree, estimate: Write? = nil) {
    self.draft = draft
    self.time = time
    if let estimate {
      pending = Self.pending(estimate, over: .empty)
      return
    }
    var known = Node.empty
    let path = draft.write.path
    func know(_ path: Path) {
      if let node = tree.node(at: path), !node.isEmpty { known.graft(node, at: path) }
    }
    for item in draft.deferred {
      if case .increment = item.value { know(path.appending(item.path)) }
    }
    switch draft.write {
    case .increment: know(path)
    case .update(_, let entries):
      for entry in entries {
        if case .increment = entry.action { know(path.appending(entry.path)) }
      }
    case .set, .remove, .setPriority: break
    }
    pending = Self.pending(draft.resolved(time: time, against: known), over: known)
  }

  private static func pending(_ write: Write, over known: Node) -> PendingWrites.Write {
    func sum(_ delta: Number, at path: Path) -> Node {
      // A server sets the sum, and no priority.
      Node(delta.incrementing(known.node(at: path).scalar))
    }
    switch write {
    case .set(let path, let node): return PendingWrites.Write(setting: DataPlace(path), node)
    case .remove(let path): return PendingWrites.Write(setting: DataPlace(path), .empty)
    case .increment(let path, let delta):
      return PendingWrites.Write(setting: DataPlace(path), sum(delta, at: path))
    case .setPriority(let path, let priority):
      return PendingWrites.Write(
        setting: DataPlace(path, isPriority: true), priority.map { Node($0) } ?? .empty)
    case .update(let path, let entries):
      return PendingWrites.Write(
        updating: path,
        entries.map { entry in
          switch entry.action {
          case .set(let node): PendingWrites.Entry(DataPlace(entry.path), node)
          case .remove: PendingWrites.Entry(DataPlace(entry.path), .empty)
          case .increment(let delta):
            PendingWrites.Entry(
              DataPlace(entry.path), sum(delta, at: path.appending(entry.path)))
          case .setPriority(let priority):
            PendingWrites.Entry(
              DataPlace(entry.path, isPriority: true), priority.map { Node($0) } ?? .empty)
          }
        })
    }
  }
}

extension SyncDialogue {
  /// A write as it is sent.
  package struct Message: Sendable {
    /// `p` or `m`, for operations on disconnecting `o` or `om`.
    let action: String
    /// The members of its body.
    private(set) var body: [UInt8]

    init(
      _ action: String, _ place: DataPlace, hash: String? = nil,
      _ appendData: (inout [UInt8]) -> Void
    ) {
      self.action = action
      var body = SyncText.body(place)
      body += ",\"d\":".utf8
      appendData(&body)
      if let hash {
        body += ",\"h\":".utf8
        JSONText.append(string: hash, to: &body)
      }
      body.append(UInt8(ascii: "}"))
      self.body = body
    }

    /// - Parameter onDisconnect: whether it is to be made when the connection ends.
    init(_ draft: Draft, onDisconnect: Bool = false) {
      let set = onDisconnect ? "o" : "p"
      let path = draft.write.path
      switch draft.write {
      case .set(_, let node):
        self.init(set, DataPlace(path)) { SyncValue(node, draft.deferred).append(to: &$0) }
      case .remove: self.init(set, DataPlace(path)) { $0 += "null".utf8 }
      case .increment(_, let delta):
        self.init(set, DataPlace(path)) { SyncValue(incrementBy: delta).append(to: &$0) }
      case .setPriority(_, let priority):
        self.init(set, DataPlace(path, isPriority: true)) {
          SyncValue(priority: priority, draft.deferred.first?.value).append(to: &$0)
        }
      case .update(_, let entries):
        self.init(onDisconnect ? "om" : "m", DataPlace(path)) {
          Self.append(entries, draft.deferred, to: &$0)
        }
      }
    }

    /// Gives the write a number.
    mutating func append(_ number: WriteNumber) {
      body.removeLast()
      body += ",\"n\":".utf8
      number.append(to: &body)
      body.append(UInt8(ascii: "}"))
    }

    private static func append(
      _ entries: [Write.Entry], _ deferred: [Draft.Deferred], to text: inout [UInt8]
    ) {
      let serverValues = DeferredByEntry(deferred, entries)
      text.append(UInt8(ascii: "{"))
      for (index, entry) in entries.enumerated() {
        if index > 0 { text.append(UInt8(ascii: ",")) }
        var name = entry.path.relativeText
        if entry.action.isPriority { name += name.isEmpty ? ".priority" : "/.priority" }
        JSONText.append(string: name, to: &text)
        text.append(UInt8(ascii: ":"))
        switch entry.action {
        case .set(let node):
          SyncValue(node, serverValues.values(below: entry.path)).append(to: &text)
        case .remove: text += "null".utf8
        case .increment(let delta): SyncValue(incrementBy: delta).append(to: &text)
        case .setPriority(let priority):
          SyncValue(priority: priority, serverValues.priority(at: entry.path)).append(to: &text)
        }
      }
      text.append(UInt8(ascii: "}"))
    }
  }
}
