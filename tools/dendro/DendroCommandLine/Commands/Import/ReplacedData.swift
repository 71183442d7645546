import DendroEngine
import DendroTree

/// What an import to a place takes away: what is there, or a leaf above it, which becomes a branch.
struct ReplacedData {
  let place: Path
  /// In words.
  let what: String
  private let target: Path

  /// Nil if nothing is lost.
  init?(by target: Path, in engine: Engine) throws {
    for count in 0...target.count {
      let place = target.prefix(count)
      let node = try engine.node(at: place).node
      if node.isEmpty { return nil }
      guard count == target.count || node.isLeaf else { continue }
      self.place = place
      self.target = target
      what = Format.data(try engine.view(at: place))
      return
    }
    return nil
  }

  /// Whether it is what an interrupted import may have left.
  var isAtTarget: Bool { place == target }

  var question: String { "This replaces \(what) at \(place)." }

  /// The refusal of an import that was not asked to replace it.
  func refusal(isContinuing: Bool) -> Failure {
    var message = "there is data at \(place) already: \(what)"
    if !isAtTarget { message += ", which an import to \(target) replaces" }
    if isContinuing {
      return Failure(
        .problem, message, hint: "--continue is for the file of which an import was interrupted")
    }
    return Failure(
      .problem, message,
      hint: isAtTarget
        ? "--replace removes it; --continue goes on with an import; or give a PATH if nothing is"
        : "--replace removes it; or give another PATH")
  }
}
