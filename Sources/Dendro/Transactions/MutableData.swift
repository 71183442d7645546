import DendroTree
public import Foundation

/// What a transaction's block reads and changes: the data at the transaction's location, or a part of it.
///
/// Every `MutableData` of one run looks at the same data, so that what is changed through one shows in
/// the others. Nothing of it shows outside before the transaction has been admitted, and a block that
/// runs again begins with the data as they are then.
///
/// A property cannot throw: a value, priority or path that cannot be used changes nothing, and the
/// transaction fails with that error, the first one if there are several.
///
/// Use it within the block that gets it; changes after the block has returned have no effect.
public final class MutableData {
  let draft: TransactionDraft
  /// From the transaction's location; nil if the path could not be used.
  let path: Path?

  init(_ draft: TransactionDraft, at path: Path?) {
    self.draft = draft
    self.path = path
  }

  var node: Node { path.map { draft.node(at: $0) } ?? .empty }

  // MARK: Content

  /// The data, in the form of ``DataSnapshot/value``: `NSNull` if there is none.
  ///
  /// Setting it replaces everything here and below, priorities included: to keep a priority, set it
  /// again afterwards. It takes what `setValue(_:)` takes, also values that were read here and cast to
  /// `[String: AnyObject]`; nil removes. An increment is added to what was here when the block began,
  /// and shows as the sum; a timestamp shows as the ``ServerValue`` that it is until the transaction
  /// is admitted.
  ///
  /// - Complexity: O(size of the data), at each call.
  public var value: Any? {
    get { path.map { draft.value(at: $0) } ?? NSNull() }
    set { if let path { draft.set(newValue, at: path) } }
  }

  /// A number or a string; `NSNull` if there is none.
  ///
  /// Setting it takes a number, a string, a ``ServerValue`` or nil. If there is no data it has no
  /// effect.
  public var priority: Any? {
    get { path.map { draft.priority(at: $0) } ?? NSNull() }
    set { if let path { draft.setPriority(newValue, at: path) } }
  }

  // MARK: Place

  /// The last segment of the path; nil at the transaction's own location.
  public var key: String? { path?.last?.string }

  /// The data at `path` below, to read and to change; "/" is this place. Changing it makes what is
  /// missing on the way.
  ///
  /// - Parameter path: as for ``DatabaseReference/child(_:)``. With one that cannot be used the
  ///   transaction fails, and what is returned holds nothing and keeps nothing.
  public func childData(byAppendingPath path: String) -> MutableData {
    MutableData(draft, at: child(path))
  }

  /// Whether there is anything at `path` below. With a path that cannot be used the transaction fails.
  public func hasChild(atPath path: String) -> Bool {
    child(path).map { !draft.node(at: $0).isEmpty } ?? false
  }

  private func child(_ text: String) -> Path? {
    do throws(ValidationError) {
      let relative = try Path(child: text)
      return path?.appending(relative)
    } catch {
      draft.fail(error)
      return nil
    }
  }

  // MARK: Children

  /// Whether there are children.
  public func hasChildren() -> Bool { node.childCount > 0 }

  /// How many children there are; 0 for a scalar.
  public var childrenCount: UInt { UInt(node.childCount) }

  /// The children as `MutableData`s, by priority and then by key: those that are here now, whatever is
  /// changed meanwhile. Each shows and changes the data as they are when it is asked.
  ///
  /// - Complexity: O(1) a child, but O(n log n) first if children have priorities.
  public var children: NSEnumerator {
    MutableChildEnumerator(path.map { (draft, $0) }, node.children(in: .priority).makeIterator())
  }
}

extension MutableData: CustomStringConvertible {
  /// Key and value, for people.
  public var description: String {
    "MutableData (\(key ?? "top")) \(value ?? NSNull())"
  }
}

/// `NSEnumerator` over the children of one moment.
private final class MutableChildEnumerator: NSEnumerator {
  private let parent: (draft: TransactionDraft, path: Path)?
  private var children: OrderedChildren.Iterator

  init(_ parent: (TransactionDraft, Path)?, _ children: OrderedChildren.Iterator) {
    self.parent = parent
    self.children = children
  }

  override func nextObject() -> Any? {
    guard let parent, let child = children.next() else { return nil }
    return MutableData(parent.draft, at: parent.path.appending(child.key))
  }
}
