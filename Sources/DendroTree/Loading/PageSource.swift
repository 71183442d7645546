/// Where the pages of a tree are read from that are not in memory: the chunks of a checkpoint.
package protocol PageSource: AnyObject, Sendable {
  /// Reads and decodes a chunk. Several threads may call it at once.
  func pages(ofChunk number: UInt32) throws(PageFailure) -> ChunkPages

  /// Makes the failure of a chunk whose pages are not those that the pages above it describe.
  func failure(_ error: PageImageError, inChunk number: UInt32) -> PageFailure

  /// Notes a chunk to which pages in memory refer, and which is not read yet.
  func didMake(_ chunk: PageChunk)

  /// Notes that a chunk was read, whose pages are kept from now on.
  ///
  /// - Throws: if its pages refer to chunks that are below other pages. Then the chunk counts as not read.
  func willKeep(_ pages: ChunkPages, of chunk: PageChunk) throws(PageFailure)

  /// Notes that nothing refers any more to a chunk that was not read.
  func willFree(_ chunk: PageChunk)

  /// Notes that a page could not be read by a call that cannot throw, and got an empty page instead.
  func didFail(_ failure: PageFailure)
}

/// Pages could not be read or written.
package struct PageFailure: Error {
  /// What the page source or the receiver of the chunks said.
  package var cause: any Error

  package init(_ cause: any Error) { self.cause = cause }
}
