/// The type of the events that a listener gets.
public enum DataEventType: Int, Sendable, Hashable, CaseIterable {
  /// A child that came into view, and once each child that was there at the beginning.
  case childAdded = 0
  /// A child that left, with the data it had.
  case childRemoved = 1
  /// A child of which anything differs, at any depth, priorities included.
  case childChanged = 2
  /// A child whose place in the order differs.
  case childMoved = 3
  /// The whole location: once at the beginning, then after every write that changed it.
  case value = 4
}

/// Stands for one registration of a listener; unique in the process.
public typealias DatabaseHandle = UInt
