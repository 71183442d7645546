import Synchronization

/// Where results go, so that no optimizer finds out that nobody looks at them.
enum Sink {
  private static let total = Atomic<UInt64>(0)

  static func take(_ value: Int) {
    total.wrappingAdd(UInt64(bitPattern: Int64(value)), ordering: .relaxed)
  }
}
