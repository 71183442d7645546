extension JSONOutput {
  mutating func node(_ node: Node) throws {
    guard let page = node.branch else {
      guard let scalar = node.scalar else { return try put("null") }
      return try leaf(scalar, priority: node.priority)
    }
    try branch(page.access, priority: node.priority)
    withExtendedLifetime(page) {}
  }

  private mutating func leaf(_ scalar: Scalar, priority: Scalar?) throws {
    guard style.form.hasPriorities, let priority else { return try self.scalar(scalar) }
    try open("{")
    try name(".value")
    try self.scalar(scalar)
    try separate()
    try name(".priority")
    try self.scalar(priority)
    try close("}")
  }

  /// Writes the branch with that root page.
  private mutating func branch(_ page: PageAccess, priority: Scalar?) throws {
    let priority = style.form.hasPriorities ? priority : nil
    if priority == nil, style.form.hasArrays, page.arrayCount != nil {
      try open("[")
      var index = 0
      try elements(of: page, &index)
      try close("]")
      return
    }
    try open("{")
    var isFirst = true
    try members(of: page, &isFirst)
    if let priority {
      try separate()
      try name(".priority")
      try scalar(priority)
    }
    try close("}")
  }

  private mutating func members(of page: PageAccess, _ isFirst: inout Bool) throws {
    for index in 0..<page.count {
      if page.kind == .inner {
        try members(of: PageAccess(page.reference(index)), &isFirst)
        continue
      }
      if isFirst { isFirst = false } else { try separate() }
      let key = page.key(index)
      try self.key(UnsafeRawBufferPointer(start: key.start, count: key.count))
      try entry(index, of: page)
    }
  }

  /// Writes the elements of the array in these pages; `next` is the index of the next element.
  private mutating func elements(of page: PageAccess, _ next: inout Int) throws {
    for index in 0..<page.count {
      if page.kind == .inner {
        try elements(of: PageAccess(page.reference(index)), &next)
        continue
      }
      let key = page.key(index)
      let arrayIndex = KeyCoding.arrayIndex(
        UnsafeRawBufferPointer(start: key.start, count: key.count))
      while next < arrayIndex ?? next {
        if next > 0 { try separate() }
        try put("null")
        next += 1
      }
      if next > 0 { try separate() }
      try entry(index, of: page)
      next += 1
    }
  }

  /// Writes the child in an entry of a leaf page.
  private mutating func entry(_ index: Int, of page: PageAccess) throws {
    let address = page.valueStart(index)
    let tag = address.load(as: UInt8.self)
    // Most values are short strings: their bytes are copied from the page into the text, without a
    // `Scalar` in between.
    if tag >= PackedScalar.stringTag, tag < PackedScalar.longStringTag {
      let count = Int(tag - PackedScalar.stringTag)
      let utf8 = (address + 1).assumingMemoryBound(to: UInt8.self)
      try put("\"")
      try escaped(UnsafeBufferPointer(start: utf8, count: count))
      return try put("\"")
    }
    if let child = page.branchReference(index), tag != PackedScalar.priorityTag {
      return try branch(PageAccess(child), priority: nil)
    }
    try node(page.node(index))
  }
}
