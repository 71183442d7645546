import DendroProtocol
import DendroTree

/// What a damaged database has lost of its data.
struct Losses: Sendable {
  let holes: [PartialTree.Hole]
  /// Whether the rules may be others than those that are left.
  let mayHaveOtherRules: Bool

  static let sentence = "The database is damaged."

  /// Why a location cannot be read: something of it is lost; nil if all of it is there.
  func refusal(ofReading location: Path) -> RESTError? {
    guard let hole = holes.first(where: { $0.concerns(location) }) else { return nil }
    return RESTError(500, "\(Self.sentence) It has lost \(hole).")
  }

  /// Why a write is refused that needs what is lost.
  static let ofWritingHere = RESTError(
    503, "\(sentence) What is written to cannot be read until it is repaired.")

  /// Why a damaged database takes no writes.
  static let ofWriting = RESTError(503, "\(sentence) It takes no writes until it is repaired.")
}
