import Synchronization

/// A chunk of pages to which stubs refer. All its stubs are entries of one page.
///
/// It reads the chunk when one of the stubs is touched, and keeps the pages until each stub has taken its own.
package final class PageChunk: Sendable {
  package let number: UInt32
  let source: any PageSource
  private let state = Mutex(State())

  /// Unchecked: see `Page`.
  private struct State: @unchecked Sendable {
    /// Those of all its stubs. Empty once the chunk is read.
    var references: [PageReference] = []
    /// Nil until the chunk is read.
    var roots: [ChunkPages.Root?]?
  }

  init(number: UInt32, source: any PageSource) {
    self.number = number
    self.source = source
    source.didMake(self)
  }

  deinit {
    if state.withLock({ $0.roots == nil }) { source.willFree(self) }
  }

  /// Notes what the page above says about one of the pages. Called while that page is decoded.
  func add(_ reference: PageReference) { state.withLock { $0.references.append(reference) } }

  /// Reads the chunk, unless it was read already. Waits for the file on the calling thread.
  package func load() throws(PageFailure) {
    try state.withLock { (state) throws(PageFailure) in try load(&state) }
  }

  /// Makes the stub keep its page, unless it has it already. Waits for the file on the calling thread.
  ///
  /// - Throws: also if the page of another stub is not the one that the page above describes: once the chunk is
  ///   read, each of its stubs gets its page without fail.
  func load(_ stub: PageStub) throws(PageFailure) {
    try state.withLock { (state) throws(PageFailure) in
      if stub.isLoaded { return }
      try load(&state)
      let place = stub.reference.root
      guard let root = state.roots?[place] else {
        preconditionFailure("each stub takes a page of its own, once")
      }
      state.roots?[place] = nil
      stub.keep(root.page)
    }
  }

  private func load(_ state: inout State) throws(PageFailure) {
    guard state.roots == nil else { return }
    let pages = try pages(for: state.references)
    try source.willKeep(pages, of: self)
    state.roots = pages.roots.map { $0 }
    state.references = []
  }

  private func pages(for references: [PageReference]) throws(PageFailure) -> ChunkPages {
    let pages = try source.pages(ofChunk: number)
    do throws(PageImageError) {
      try pages.check(references)
    } catch {
      throw source.failure(error, inChunk: number)
    }
    return pages
  }

  /// The pages that were read and that no stub has taken yet; nil if the chunk was not read.
  var remainingPages: [Page]? {
    state.withLock { $0 }.roots.map { $0.compactMap { $0?.page } }
  }

  /// The page of a stub. If the chunk was not read before, it is read for this call alone: neither the stub nor
  /// the chunk keeps the page.
  ///
  /// - Parameter pages: the chunk's pages, if the caller has read them before.
  func page(of stub: PageStub, _ pages: inout ChunkPages?) throws(PageFailure) -> Page {
    // Under the lock, so that the chunk counts as unread until the chunks below it are known.
    let found = try state.withLock { (state) throws(PageFailure) -> Found in
      if stub.isLoaded { return Found(page: nil) }
      let reference = stub.reference
      if let root = state.roots?[reference.root] { return Found(page: root.page) }
      if pages?.number != number { pages = try self.pages(for: state.references) }
      guard let roots = pages?.roots, reference.root < roots.count,
        roots[reference.root].matches(reference)
      else { throw source.failure(.mismatch(reference), inChunk: number) }
      return Found(page: roots[reference.root].page)
    }
    return found.page ?? stub.resolvedPage
  }

  /// Unchecked: see `Page`.
  private struct Found: @unchecked Sendable {
    /// Nil if the stub has its page.
    var page: Page?
  }
}
