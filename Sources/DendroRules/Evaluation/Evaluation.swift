import DendroTree

/// One verdict while it is made.
struct Evaluation<Source: DataSource> {
  let program: RuleProgram
  let request: RuleRequest
  let old: Source
  let new: Source

  /// The rules' nodes from the root to the one whose rule is evaluated.
  var levels: [Level] = []
  /// Two places for each level, then those of the expression.
  var places: [Place<Source.View>] = []
  var stack: [Value] = []
  var stepsLeft = RuleLimits.steps
  var uses: RuleObservations.Inputs = []
  var recorder: TraceRecorder?
  var observer: ObservationRecorder?

  init(
    _ program: RuleProgram, _ request: RuleRequest, _ old: Source, _ new: Source,
    _ details: RuleDetails
  ) {
    self.program = program
    self.request = request
    self.old = old
    self.new = new
    if details.contains(.trace) { recorder = TraceRecorder(program) }
    if details.contains(.observations) { observer = ObservationRecorder(request) }
    levels.reserveCapacity(12)
    places.reserveCapacity(40)
    stack.reserveCapacity(8)
    levels.append(Level(node: 0))
    places.append(Place(view: old.root, key: nil, parent: -1, isNew: false, depth: 0))
    places.append(Place(view: new.root, key: nil, parent: -1, isNew: true, depth: 0))
  }

  consuming func verdict(_ isAllowed: Bool) -> RuleVerdict {
    let stepCount = RuleLimits.steps - max(0, stepsLeft)
    return RuleVerdict(
      isAllowed: isAllowed, stepCount: stepCount,
      trace: recorder.map { RuleTrace(isAllowed, stepCount, $0) },
      observations: observer?.finish(uses))
  }

  // MARK: Deciding

  mutating func decide() -> Bool {
    let isRead = request.query != nil
    for location in request.locations {
      guard location.path.count <= RuleLimits.depth else { return false }
      guard isRead ? isReadable(location.path) : isWritable(location.path) else { return false }
    }
    return !request.locations.isEmpty
  }

  /// Whether a `.read` from the root to the path is true.
  private mutating func isReadable(_ path: Path) -> Bool {
    if isTrue(.read, at: 0) { return true }
    for key in path.keys {
      guard descend(key) else { return false }
      if isTrue(.read, at: levels.count - 1) { return true }
    }
    return false
  }

  /// Whether a `.write` from the root to the path is true, and every `.validate` that applies.
  private mutating func isWritable(_ path: Path) -> Bool {
    let isComplete = walk(to: path)
    guard isGranted(), areValid() else { return false }
    return !isComplete || isValidBelow(levels.count - 1)
  }

  /// Makes the levels from the root to the path, and keeps those that the entry before had as well: their rules see
  /// the same data, and are not asked again.
  ///
  /// - Returns: whether there are rules for the path itself.
  private mutating func walk(to path: Path) -> Bool {
    var depth = 1
    for key in path.keys {
      if depth < levels.count, places[2 * depth].key == key {
        depth += 1
        continue
      }
      if depth < levels.count { ascend(to: depth) }
      guard descend(key) else { return false }
      depth += 1
    }
    if depth < levels.count { ascend(to: depth) }
    return true
  }

  /// - Returns: false if there are no rules for the child.
  private mutating func descend(_ key: Key) -> Bool {
    let node = program.nodes[levels[levels.count - 1].node].child(key)
    guard node >= 0 else { return false }
    push(key, Int(node), nil)
    return true
  }

  private mutating func push(_ key: Key, _ node: Int, _ new: Source.View?) {
    let parent = Int32(truncatingIfNeeded: places.count - 2)
    let depth = Int32(truncatingIfNeeded: levels.count)
    levels.append(Level(node: node))
    places.append(Place(view: nil, key: key, parent: parent, isNew: false, depth: depth))
    places.append(Place(view: new, key: key, parent: parent + 1, isNew: true, depth: depth))
  }

  private mutating func ascend(to count: Int) {
    levels.removeLast(levels.count - count)
    places.removeLast(places.count - 2 * count)
  }

  private mutating func isGranted() -> Bool {
    for level in levels.indices {
      let isGranted: Bool
      if let known = levels[level].isWritable {
        isGranted = known
      } else {
        isGranted = isTrue(.write, at: level)
        levels[level].isWritable = isGranted
      }
      if isGranted { return true }
    }
    return false
  }

  /// Whether the `.validate` rules on the way are true, of nodes that exist after the write.
  private mutating func areValid() -> Bool {
    for level in levels.indices where !levels[level].isValid {
      guard isValid(at: level) else { return false }
      levels[level].isValid = true
    }
    return true
  }

  private mutating func isValid(at level: Int) -> Bool {
    guard program.nodes[levels[level].node].validate >= 0 else { return true }
    guard exists(2 * level + 1) else { return true }
    return isTrue(.validate, at: level)
  }

  // MARK: Below the write

  /// Whether the `.validate` rules of all that exists below a level are true.
  private mutating func isValidBelow(_ level: Int) -> Bool {
    let node = program.nodes[levels[level].node]
    guard node.validatesBelow else { return true }
    let view = self.view(2 * level + 1)
    for child in node.children where program.nodes[Int(child.node)].validates {
      guard isValid(child.key, Int(child.node), view.child(child.key)) else { return false }
    }
    guard node.wildcard >= 0, program.nodes[Int(node.wildcard)].validates else { return true }
    var result = true
    view.forEachChild { key, child in
      if node.literalChild(key) < 0 { result = isValid(key, Int(node.wildcard), child) }
      return result
    }
    return result
  }

  /// Whether a child of the last level is valid, and all below it.
  private mutating func isValid(_ key: Key, _ node: Int, _ new: Source.View) -> Bool {
    stepsLeft -= 1
    guard stepsLeft >= 0, levels.count <= RuleLimits.depth else { return false }
    guard new.kind != .nothing else { return true }
    push(key, node, new)
    let level = levels.count - 1
    let result = isValid(at: level) && isValidBelow(level)
    ascend(to: level)
    return result
  }

  // MARK: Rules

  /// Whether the rule of a kind at a level is true; false if there is none.
  @inline(__always)
  private mutating func isTrue(_ kind: RuleKind, at level: Int) -> Bool {
    let index = program.nodes[levels[level].node][kind]
    return index >= 0 && isTrue(rule: Int(index), at: level)
  }

  private mutating func isTrue(rule index: Int, at level: Int) -> Bool {
    if recorder != nil {
      let location = Self.location(keys(2 * level))
      recorder?.begin(index, location)
    }
    if let constant = program.rules[index].constant {
      stepsLeft -= 1
      recorder?.end(.success(constant))
      return constant && stepsLeft >= 0
    }
    let placeCount = places.count
    defer { places.removeLast(places.count - placeCount) }
    do throws(Failure) {
      let result = try run(program.rules[index].code, at: level)
      recorder?.end(.success(result))
      return result
    } catch {
      recorder?.end(.failure(error))
      return false
    }
  }
}
