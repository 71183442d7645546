/// What becomes of a child that cannot be decoded when children are read as values of one type.
public struct UndecodableChildren: Sendable {
  let report: (@Sendable (DataSnapshot, any Error) -> Void)?

  /// The whole reading throws its error, which names it.
  public static let throwing = UndecodableChildren(report: nil)

  /// It is left out.
  ///
  /// - Parameter report: is called with the child and its error, in the order of the children, where they are decoded.
  public static func skipping(
    _ report: @escaping @Sendable (_ child: DataSnapshot, _ error: any Error) -> Void
  ) -> UndecodableChildren {
    UndecodableChildren(report: report)
  }
}
