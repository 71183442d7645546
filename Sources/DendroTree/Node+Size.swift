extension Node {
  /// Whether the keys and values of the node take more than so many bytes. Their pages count, as they are in memory: that
  /// is about what they take as JSON.
  ///
  /// - Complexity: O(pages, up to the limit). Pages that are only in files are read.
  package func isLarger(than byteLimit: Int) -> Bool {
    guard let page = branch else {
      guard case .string(let text)? = scalar else { return false }
      return text.utf8.count > byteLimit
    }
    return withExtendedLifetime(page) {
      var room = byteLimit
      return !Node.fits(page.access, into: &room)
    }
  }

  private static func fits(_ page: PageAccess, into room: inout Int) -> Bool {
    room -= Int(page.header.pointee.used)
    if room < 0 { return false }
    guard page.hasReferences else { return true }
    for index in 0..<page.count where page.kind == .inner || page.refers(index) {
      if !fits(PageAccess(page.reference(index)), into: &room) { return false }
    }
    return true
  }
}
