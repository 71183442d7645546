import Dendro
import DendroCluster

/// Where PostgreSQL is that servers share their databases over.
struct ClusterAddress {
  /// Has the password as well, which the words of a process do not keep from others.
  static let environmentName = "DENDRO_CLUSTER"

  /// As libpq reads it.
  let text: String
  /// What says it, for messages.
  let name: String

  /// - Parameter word: that of the command line, which counts before the environment.
  /// - Returns: nil if neither has one.
  init?(_ arguments: Arguments, _ word: String?) throws {
    let option = arguments.command.name == "serve" ? "--cluster" : "ADDRESS"
    if let word {
      guard !word.isEmpty else { throw Failure.usage("\(option) is empty") }
      (text, name) = (word, option)
    } else if let found = Platform.environment(Self.environmentName), !found.isEmpty {
      (text, name) = (found, Self.environmentName)
    } else {
      return nil
    }
    do throws(DatabaseError) {
      try ClusterReader.check(text)
    } catch {
      throw Failure.usage("\(name): \(error.message)")
    }
  }
}
