import DendroTree

/// Compares what a killed process left with the writes that were acknowledged to it.
struct KillVerdict {
  let workload: KillWorkload
  let writerCount: Int
  /// As of the last verdict: all that it says must still hold.
  private(set) var states: [KillWorkload.WriterState]
  private(set) var acknowledgedCount = 0
  private(set) var unacknowledgedSurvivorCount = 0
  /// Whether acknowledged writes may be missing at the end, since they were not synchronized.
  let mayLose: Bool
  /// Acknowledged writes that are missing, if that may be.
  private(set) var lostCount = 0

  init(workload: KillWorkload, writerCount: Int, mayLose: Bool = false) {
    self.workload = workload
    self.writerCount = writerCount
    self.mayLose = mayLose
    states = Array(repeating: .init(), count: writerCount)
  }

  /// - Parameter acknowledged: the last acknowledged number of each writer.
  /// - Returns: what is wrong; empty if all holds.
  mutating func judge(_ root: Node, acknowledged: [Int: Int]) -> [String] {
    var problems: [String] = []
    var posts: [String: KillWorkload.Post] = [:]
    var sums = (updates: 0, stars: 0)
    for writer in 0..<writerCount {
      let updates = integer(root, "counters/updates/\(writer)")
      let increments = integer(root, "plain/\(writer)")
      let done = updates + increments
      let safe = max(states[writer].done, acknowledged[writer] ?? 0)
      acknowledgedCount += safe - states[writer].done
      if updates - increments != done % 2 {
        problems.append(
          "writer \(writer): \(updates) updates but \(increments) increments: a later write without an earlier one"
        )
        continue
      }
      // One write at a time: at most the one that was not yet answered may be there beside them.
      guard done == safe || done == safe + 1 || (mayLose && done < safe) else {
        problems.append(
          done < safe
            ? "writer \(writer): \(safe - done) acknowledged writes of \(safe) are lost"
            : "writer \(writer): \(done) writes are there, only \(safe + 1) were ever begun")
        continue
      }
      unacknowledgedSurvivorCount += max(0, done - safe)
      lostCount += max(0, safe - done)
      while states[writer].done < done {
        workload.apply(states[writer].done + 1, of: writer, to: &states[writer])
      }
      sums.updates += updates
      sums.stars += states[writer].starsGiven
      if integer(root, "star-count/\(writer)") != states[writer].starsGiven {
        problems.append("writer \(writer): star-count differs")
      }
      compare(
        root.node(at: path("user-posts/\(writer)")), with: states[writer].posts,
        place: "user-posts/\(writer)", &problems)
      posts.merge(states[writer].posts) { $1 }
    }
    compare(root.node(at: path("posts")), with: posts, place: "posts", &problems)
    if integer(root, "counters/total") != sums.updates {
      problems.append(
        "counters/total is \(integer(root, "counters/total")), the writers' sum \(sums.updates)")
    }
    let stars = root.node(at: path("stars")).children.reduce(0) { sum, child in
      guard case .integer(let count)? = child.node.scalar else { return sum }
      return sum + Int(count)
    }
    if stars != sums.stars { problems.append("\(stars) stars of \(sums.stars)") }
    do {
      try root.checkInvariants()
    } catch {
      problems.append("the tree's invariants: \(error)")
    }
    return problems
  }

  private func compare(
    _ node: Node, with expected: [String: KillWorkload.Post], place: String,
    _ problems: inout [String]
  ) {
    var left = expected
    for (key, child) in node.children {
      guard let post = left.removeValue(forKey: key.string) else {
        problems.append("\(place)/\(key): not written, or removed")
        continue
      }
      if KillWorkload.post(child) != post { problems.append("\(place)/\(key): other content") }
    }
    for key in left.keys.sorted() { problems.append("\(place)/\(key): missing") }
  }

  private func integer(_ root: Node, _ text: String) -> Int {
    guard case .integer(let value)? = root.node(at: path(text)).scalar else { return 0 }
    return Int(value)
  }

  private func path(_ text: String) -> Path { try! Path(parsing: text) }
}

extension KillVerdict {
  /// Whether no write is known to be there yet.
  var isUntouched: Bool { states.allSatisfy { $0.done == 0 } }
}
