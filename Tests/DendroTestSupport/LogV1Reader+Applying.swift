package import DendroEngine
package import DendroStorage
package import DendroTree

extension LogV1Reader {
  /// Applies the next write to a tree.
  ///
  /// - Parameter location: nil to apply every write whole; otherwise what of it concerns the location.
  package mutating func applyNext(
    to root: inout Node, concerning location: ReplayLocation? = nil
  ) throws(CodingError) -> (lsn: LogSequenceNumber, time: Int64) {
    let write = try next()
    var editor = TreeEditor(root, remembersPlace: false)
    root = .empty
    if let location {
      do throws(PageFailure) {
        try location.withPart(of: write, PayloadBuffer()) { (part) throws(PageFailure) in
          editor.apply(part) { _, _ in }
        }
      } catch {
        preconditionFailure("all pages are in memory")
      }
    } else {
      editor.apply(write) { _, _ in }
    }
    root = editor.finish()
    return (lsn, time)
  }
}
