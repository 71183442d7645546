extension Node {
  /// The memory of all pages. A page with several references in the tree is counted once for each; a chunk
  /// that was read, with all its pages.
  ///
  /// - Complexity: O(nodes).
  package func memory() -> TreeMemory {
    var counter = MemoryCounter()
    if let page = branch {
      counter.add(page.unresolved)
      withExtendedLifetime(page) {}
    } else {
      counter.memory.leafCount = isEmpty ? 0 : 1
    }
    return counter.memory
  }
}

/// Adds up the memory of pages.
private struct MemoryCounter {
  var memory = TreeMemory()
  /// The chunks that were read and whose remaining pages were added.
  private var readChunks: Set<ObjectIdentifier> = []

  mutating func add(_ page: PageAccess) {
    memory.pageCount += 1
    memory.byteCount += Page.overhead + Int(page.header.pointee.capacity)
    if page.kind == .stub { return add(PageStub(page.header)) }
    for index in 0..<page.count {
      if page.hasReferences, page.reference(index).pointee != nil {
        add(PageAccess(unresolved: page.reference(index)))
      } else {
        memory.leafCount += 1
      }
    }
    // A box without a reference is one leaf, which the loop counted as its entry.
  }

  private mutating func add(_ stub: PageStub) {
    if let page = stub.loadedPage { return add(page) }
    let chunk = stub.chunk
    guard let remaining = chunk.remainingPages else {
      memory.unreadChunks.insert(chunk.number)
      return
    }
    guard readChunks.insert(ObjectIdentifier(chunk)).inserted else { return }
    for page in remaining {
      add(page.unresolved)
      withExtendedLifetime(page) {}
    }
  }
}

extension ChunkPages {
  /// The memory of all pages, and of what stands in the place of pages of other chunks.
  package var memoryByteCount: Int {
    var counter = MemoryCounter()
    for root in roots {
      counter.add(root.page.unresolved)
      withExtendedLifetime(root.page) {}
    }
    return counter.memory.byteCount + open.count * PageStub.memoryByteCount
  }
}
