/// How a node is written as JSON.
package struct JSONStyle: Hashable, Sendable {
  package enum Form: Hashable, Sendable {
    /// The form that applications read, without priorities.
    case value
    /// The whole content: a priority is written as `.priority`, a leaf with a priority as
    /// `{".value": v, ".priority": p}`.
    case export
    /// The same without arrays, as the API of the Realtime Database has it.
    case exportAsObjects

    var hasPriorities: Bool { self != .value }
    var hasArrays: Bool { self != .exportAsObjects }
  }

  package var form: Form
  /// Writes each entry on its own line, indented by two spaces a level. Otherwise there is no white
  /// space at all.
  package var isPretty: Bool

  package init(_ form: Form = .value, isPretty: Bool = false) {
    self.form = form
    self.isPretty = isPretty
  }
}
