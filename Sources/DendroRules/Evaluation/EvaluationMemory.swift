import DendroTree

/// Where the stacks of one evaluation begin: on the stack of the thread, so that most verdicts allocate nothing.
struct EvaluationMemory<View: DataView>: ~Copyable {
  let levels: UnsafeMutableBufferPointer<Level>
  let places: UnsafeMutableBufferPointer<Place<View>>
  let keys: UnsafeMutableBufferPointer<Key>
  let values: UnsafeMutableBufferPointer<Value>

  /// Calls `body` with memory that is valid during the call: less than 1 KB of each kind, since more would come from
  /// the heap.
  @inline(__always)
  static func with<R>(_ body: (borrowing EvaluationMemory) -> R) -> R {
    withUnsafeTemporaryAllocation(of: Level.self, capacity: 16) { levels in
      withUnsafeTemporaryAllocation(of: Place<View>.self, capacity: 24) { places in
        withUnsafeTemporaryAllocation(of: Key.self, capacity: 24) { keys in
          withUnsafeTemporaryAllocation(of: Value.self, capacity: 12) { values in
            body(EvaluationMemory(levels: levels, places: places, keys: keys, values: values))
          }
        }
      }
    }
  }
}
