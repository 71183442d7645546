/// A location, or a query of it.
package struct QueryTarget: Hashable, Sendable {
  package let path: Path
  package let parameters: QueryParameters

  /// - Parameters:
  ///   - path: of the location.
  ///   - parameters: all children in the default order, if they are left out.
  package init(_ path: Path, _ parameters: QueryParameters = QueryParameters()) {
    self.path = path
    self.parameters = parameters
  }
}
