/// One write, borrowed: what admission, replay, followers and previews apply to a tree.
///
/// Its body has the bytes that the log holds for it (the write format's article lists them), but that two things
/// may stand in the place of bytes: a tree that exists as pages, and a server value. A view with server values has
/// to be resolved before it is applied.
///
/// Public for the reason that `PayloadBuffer` is.
///
/// Unsafe: it refers to memory that its maker keeps, unchanged, as long as the view is used; and the bytes are
/// trusted. They were made by `WriteBuilder` or checked by `BodyChecker`.
public struct WriteView {
  /// The stored bytes of the path, of at most `Limits.depth` keys together with what is written below it.
  public let path: UnsafeRawBufferPointer
  /// The value, or the entries of an update, with its tags.
  public let body: UnsafeRawBufferPointer
  /// The counts and properties of the body, noted when it was made or checked.
  public let facts: WriteFacts
  /// Whether it sets, adds or updates.
  public let kind: WriteKind
  /// What owns the bytes and the trees, if that is a write that may be kept.
  @usableFromInline let owner: Unmanaged<EncodedWrite>?

  /// Makes the view of a write without trees.
  @inlinable @inline(__always)
  public init(
    _ kind: WriteKind, at path: UnsafeRawBufferPointer, body: UnsafeRawBufferPointer,
    facts: WriteFacts
  ) {
    self.kind = kind
    self.path = path
    self.body = body
    self.facts = facts
    owner = nil
  }

  init(
    _ write: EncodedWrite, at path: UnsafeRawBufferPointer, body: UnsafeRawBufferPointer
  ) {
    kind = write.kind
    self.path = path
    self.body = body
    facts = write.facts
    owner = .passUnretained(write)
  }

  /// The bytes of the body in the log, also if they were not made.
  @inlinable @inline(__always)
  public var logByteCount: Int {
    owner.map { $0._withUnsafeGuaranteedRef { $0.logByteCount } } ?? body.count
  }

  /// Calls `use` with the body as the log holds it: the same, unless it has trees.
  @inlinable @inline(__always)
  public func withLogBody<R>(_ use: (UnsafeRawBufferPointer) -> R) -> R {
    guard let owner else { return use(body) }
    return owner._withUnsafeGuaranteedRef { $0.withLogBody(use) }
  }

  /// The trees to which the body refers by their numbers.
  var trees: [Node] { owner.map { $0._withUnsafeGuaranteedRef { $0.trees } } ?? [] }
}

/// What is known of a write's body without reading it.
public struct WriteFacts: Sendable {
  @usableFromInline var entries: Int32 = 1
  @usableFromInline var removals: Int32 = 0
  /// Whether the entries of an update come in the order of their paths, none at or below another one, and none
  /// changes a priority: then they are applied as they stand.
  public var isOrdered = true
  /// Whether the children of each branch in the body come in the order of their keys.
  public var hasOrderedChildren = true
  /// Whether server values stand in the body.
  public var hasServerValues = false

  /// The facts of an empty body.
  @inlinable @inline(__always)
  public init() {}

  /// The entries of an update; 1 for other writes.
  @inlinable @inline(__always)
  public var entryCount: Int {
    get { Int(entries) }
    set { entries = Int32(newValue) }
  }

  /// The entries that remove something.
  @inlinable @inline(__always)
  public var removalCount: Int {
    get { Int(removals) }
    set { removals = Int32(newValue) }
  }

  /// Whether the write can only make the tree smaller.
  @inlinable @inline(__always)
  public var onlyRemoves: Bool { removals == entries }
}
