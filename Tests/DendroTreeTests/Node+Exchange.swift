@testable import DendroTree

extension Node {
  /// One edit of a leaf by `Pages.exchange`, the step that `TreeEditor` is made of.
  mutating func exchange(
    _ edit: LeafEdit, at storedPath: UnsafeRawBufferPointer,
    replaced: (UnsafeRawBufferPointer) -> Void
  ) -> LeafEdit.Outcome {
    guard !storedPath.isEmpty else { return .declined }
    var root = takeBranch()
    guard root != nil else { return .declined }
    var place = Pages.Place()
    let outcome = Pages.exchange(&root, PathStep(stored: storedPath), edit, &place, replaced)
    content = .page(root!)
    return outcome
  }
}
