/// Where the stacks of one evaluation begin: on the stack of the thread, so that most verdicts allocate nothing.
struct EvaluationMemory<View: DataView>: ~Copyable {
  let levels: UnsafeMutableBufferPointer<Level>
  let places: UnsafeMutableBufferPointer<Place<View>>
  let values: UnsafeMutableBufferPointer<Value>
  let objects: UnsafeMutableBufferPointer<JSONValue>
  let texts: UnsafeMutableRawBufferPointer
  let observations: UnsafeMutableBufferPointer<UInt8>

  /// Calls `body` with memory that is valid during the call: at most 1 KB of each kind, since more would come from
  /// the heap.
  @inline(__always)
  static func with<R>(_ body: (borrowing EvaluationMemory) -> R) -> R {
    withUnsafeTemporaryAllocation(of: Level.self, capacity: 16) { levels in
      withUnsafeTemporaryAllocation(of: Place<View>.self, capacity: 32) { places in
        withUnsafeTemporaryAllocation(of: Value.self, capacity: 12) { values in
          withUnsafeTemporaryAllocation(of: JSONValue.self, capacity: 4) { objects in
            withUnsafeTemporaryAllocation(byteCount: 512, alignment: 1) { texts in
              withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 1024) { observations in
                body(
                  EvaluationMemory(
                    levels: levels, places: places, values: values, objects: objects, texts: texts,
                    observations: observations))
              }
            }
          }
        }
      }
    }
  }
}
