import DendroStorage
import Foundation

/// The clock that the options ask for.
final class OptionClock: Clock {
  private let date: @Sendable () -> Date

  init(_ date: @escaping @Sendable () -> Date) { self.date = date }

  func now() -> Int64 { HistoryTime.milliseconds(date()) ?? 0 }
}

extension DatabaseOptions {
  /// A system with the options' clock.
  func applied(to environment: DendroStorage.Environment) -> DendroStorage.Environment {
    guard let clock else { return environment }
    return DendroStorage.Environment(
      fileSystem: environment.fileSystem, clock: OptionClock(clock),
      randomness: environment.randomness)
  }
}
