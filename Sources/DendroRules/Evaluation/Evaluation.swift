import DendroTree

/// One verdict while it is made.
struct Evaluation<Source: DataSource>: ~Copyable {
  let program: RuleProgram
  /// By its address: a copy would count each of its references. The caller of `init` keeps it longer than this.
  let request: UnsafePointer<RuleRequest>
  let old: Source
  let new: Source

  /// The rules' nodes from the root to the one whose rule is evaluated.
  var levels: Stack<Level>
  /// Two places for each level, then those of the expression.
  var places: Stack<Place<Source.View>>
  var stack: Stack<Value>
  var texts: TextMemory
  /// The objects and arrays below `auth` that the expression has reached.
  var objects: Stack<JSONValue>
  /// `auth.uid`, if it was asked for.
  var userID: Value?
  var stepsLeft = RuleLimits.steps
  /// How many there were, for as much as the write was found to have.
  private var stepLimit = RuleLimits.steps
  var uses: RuleObservations.Inputs = []
  var recorder: TraceRecorder?
  let isObserving: Bool
  /// The place, after the write, of the location that is judged, if all that is there is the write's own: looks at it and
  /// below are not noted. -1 if there is none.
  var writtenPlace = -1
  var observer: ObservationRecorder
  /// Whether what is below the location that is judged comes from the write: a priority leaves it as it was.
  private var writesBelow = false

  init(
    _ program: RuleProgram, _ request: UnsafePointer<RuleRequest>, _ old: Source, _ new: Source,
    _ details: RuleDetails, _ memory: borrowing EvaluationMemory<Source.View>
  ) {
    levels = Stack(in: memory.levels)
    places = Stack(in: memory.places)
    stack = Stack(in: memory.values)
    texts = TextMemory(in: memory.texts)
    objects = Stack(in: memory.objects)
    self.program = program
    self.request = request
    self.old = old
    self.new = new
    isObserving = details.contains(.observations)
    observer = ObservationRecorder(isObserving ? request : nil, memory.observations)
    if details.contains(.trace) { recorder = TraceRecorder(program) }
    levels.append(Level(node: 0))
    places.append(Place(view: old.root, isNew: false, depth: 0, parent: -1, key: nil))
    places.append(Place(view: new.root, isNew: true, depth: 0, parent: -1, key: nil))
  }

  consuming func verdict(_ isAllowed: Bool) -> RuleVerdict {
    let stepCount = stepLimit - max(0, stepsLeft)
    if recorder == nil, !isObserving {
      return RuleVerdict(isAllowed: isAllowed, stepCount: stepCount)
    }
    return RuleVerdict(
      isAllowed: isAllowed, stepCount: stepCount,
      trace: recorder.map { RuleTrace(isAllowed, stepCount, $0) },
      observations: isObserving ? observer.finish(uses, isComplete: stepsLeft >= 0) : nil)
  }

  // MARK: Deciding

  mutating func decide() -> Bool {
    let isRead = request.pointee.query != nil
    let count = request.pointee.locations.count
    for index in 0..<count {
      guard request.pointee.locations[index].path.count <= RuleLimits.depth else { return false }
      // The request keeps the bytes, and they stay where they are: those of an array that does not change.
      let path = request.pointee.locations[index].path.storedBytes.withUnsafeBytes { $0 }
      if isRead {
        guard isReadable(path) else { return false }
      } else {
        let isPriority = request.pointee.locations[index].isPriority
        writesBelow = !isPriority
        if index > 0, !isPriority { addSteps() }
        guard isWritable(path, isWhole: !isPriority && !request.pointee.hasServerValues) else {
          return false
        }
      }
    }
    return true
  }

  /// Whether a `.read` from the root to the path is true.
  private mutating func isReadable(_ path: UnsafeRawBufferPointer) -> Bool {
    if isTrue(program.nodeCodes[0].read, at: 0) { return true }
    for key in KeyViews(storedPath: path) {
      guard descend(key) else { return false }
      let level = levels.count - 1
      if isTrue(program.nodeCodes[Int(levels[level].node)].read, at: level) { return true }
    }
    return false
  }

  /// Whether a `.write` from the root to the path is true, and every `.validate` that applies.
  ///
  /// - Parameter isWhole: whether the write itself says all that is at the path afterwards.
  private mutating func isWritable(_ path: UnsafeRawBufferPointer, isWhole: Bool) -> Bool {
    let isComplete = walk(to: path)
    writtenPlace = isComplete && isWhole ? 2 &* levels.count &- 1 : -1
    guard isGranted(), areValid() else { return false }
    return !isComplete || isValidBelow(levels.count - 1)
  }

  private mutating func isGranted() -> Bool {
    for level in 0..<levels.count {
      let isGranted: Bool
      if let known = levels[level].isWritable {
        isGranted = known
      } else {
        isGranted = isTrue(program.nodeCodes[Int(levels[level].node)].write, at: level)
        levels[level].isWritable = isGranted
      }
      if isGranted { return true }
    }
    return false
  }

  /// Whether the `.validate` rules on the way are true, of nodes that exist after the write.
  private mutating func areValid() -> Bool {
    for level in 0..<levels.count where !levels[level].isValid {
      guard isValid(at: level) else { return false }
      levels[level].isValid = true
    }
    return true
  }

  private mutating func isValid(at level: Int) -> Bool {
    let rule = program.nodeCodes[Int(levels[level].node)].validate
    return rule < 0 || !exists(2 &* level &+ 1) || isTrue(rule, at: level)
  }

  // MARK: Below the write

  /// Whether the `.validate` rules of all that exists below a level are true.
  private mutating func isValidBelow(_ level: Int) -> Bool {
    let node = Int(levels[level].node)
    let code = program.nodeCodes[node]
    guard code.validatesBelow else { return true }
    let place = 2 &* level &+ 1
    let view = self.view(place)
    let first = Int(code.firstChild)
    for index in first..<first &+ Int(code.childCount) {
      let child = Int(program.childNodes[index])
      guard program.nodeCodes[child].validates else { continue }
      let key = program.childKeys[index]
      guard isValid(key, child, view.child(key)) else { return false }
    }
    let wildcard = Int(code.wildcard)
    guard wildcard >= 0, program.nodeCodes[wildcard].validates else { return true }
    var isValid = true
    view.visitChildren { key, child in
      if program.literalChild(code, key) < 0 { isValid = self.isValid(key, wildcard, child) }
      return isValid
    }
    if isValid { noteKeys(place) }
    return isValid
  }

  /// Whether a child of the last level is valid, and all below it.
  private mutating func isValid(_ key: KeyView, _ node: Int, _ new: Source.View) -> Bool {
    stepsLeft &-= 1
    guard stepsLeft >= 0, levels.count <= RuleLimits.depth else {
      stepsLeft = -1
      return false
    }
    if new.isEmpty {
      if !isObserving { return true }
    } else if writesBelow {
      addSteps()
    }
    push(key, node, new)
    let level = levels.count &- 1
    // Noted as well: the rules of the child and below are asked only if it is there.
    let result = !exists(2 &* level &+ 1) || (isValid(at: level) && isValidBelow(level))
    ascend(to: level)
    return result
  }

  /// A location more is written: it has steps of its own.
  private mutating func addSteps() {
    stepsLeft &+= RuleLimits.stepsPerLocation
    stepLimit &+= RuleLimits.stepsPerLocation
  }

  // MARK: Rules

  /// Whether a rule is true at a level; false if there is none.
  @inline(__always)
  private mutating func isTrue(_ rule: Int32, at level: Int) -> Bool {
    rule >= 0 && isTrue(rule: Int(rule), at: level)
  }

  private mutating func isTrue(rule index: Int, at level: Int) -> Bool {
    if recorder != nil {
      let location = Self.location(keys(2 * level))
      recorder?.begin(index, location)
    }
    let code = program.ruleCodes[index]
    if code.literal != .none {
      stepsLeft &-= 1
      recorder?.end(.success(code.literal == .isTrue))
      return code.literal == .isTrue && stepsLeft >= 0
    }
    defer { forgetExpression() }
    do throws(Failure) {
      let result = try run(Int(code.start)..<Int(code.end), at: level)
      recorder?.end(.success(result))
      return result
    } catch {
      recorder?.end(.failure(error))
      return false
    }
  }
}
