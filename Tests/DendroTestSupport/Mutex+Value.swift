package import Synchronization

extension Mutex where Value: Sendable {
  /// What it holds now. A closure instead of it, within `#expect`, takes the type checker far longer.
  package var value: Value { withLock { $0 } }
}
