import Synchronization

/// A chunk of pages to which stubs refer. All its stubs are entries of one page.
///
/// It reads the chunk when one of the stubs is touched, and keeps the pages until each stub has taken its own.
final class PageChunk: Sendable {
  let number: UInt32
  let source: any PageSource
  private let state = Mutex(State())

  /// Unchecked: see `Page`.
  private struct State: @unchecked Sendable {
    /// Nil until the chunk is read.
    var roots: [ChunkPages.Root?]?
  }

  init(number: UInt32, source: any PageSource) {
    self.number = number
    self.source = source
  }

  /// Makes the stub keep its page, unless it has it already. Waits for the file on the calling thread.
  func load(_ stub: PageStub) throws(PageFailure) {
    try state.withLock { (state) throws(PageFailure) in
      if stub.isLoaded { return }
      if state.roots == nil {
        let pages = try source.pages(ofChunk: number)
        state.roots = pages.roots.map { $0 }
        source.didLoad(pages)
      }
      let reference = stub.reference
      guard let roots = state.roots, reference.root < roots.count, let root = roots[reference.root],
        root.matches(reference)
      else { throw source.failure(.mismatch(reference), inChunk: number) }
      state.roots?[reference.root] = nil
      stub.keep(root.page)
    }
  }

  /// The pages that were read and that no stub has taken yet; nil where the chunk was not read.
  var remainingPages: [Page]? {
    state.withLock { $0 }.roots.map { $0.compactMap { $0?.page } }
  }

  /// The page of a stub, read for this call alone: neither the stub nor the chunk keeps it.
  ///
  /// - Parameter pages: the chunk's pages, where the caller has read them before.
  func page(of stub: PageStub, _ pages: inout ChunkPages?) throws(PageFailure) -> Page {
    if pages?.number != number { pages = try source.pages(ofChunk: number) }
    let reference = stub.reference
    guard let roots = pages?.roots, reference.root < roots.count,
      roots[reference.root].matches(reference)
    else { throw source.failure(.mismatch(reference), inChunk: number) }
    return roots[reference.root].page
  }
}
