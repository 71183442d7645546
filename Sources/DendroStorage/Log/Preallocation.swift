/// Space allocated behind a segment's records, so that a synchronize need not make a new file size durable.
struct Preallocation {
  /// Where the allocated space ends; the file reads as zeros between its last record and here.
  private(set) var end: UInt64
  private var step: UInt64
  private let stepMax: UInt64

  init(end: UInt64, _ options: LogOptions) {
    self.end = end
    step = options.preallocationMin
    stepMax = options.preallocationMax
  }

  /// Allocates space up to `newEnd` and a step beyond. A failure is ignored: the write itself fails if
  /// there is no room.
  mutating func extend(to newEnd: UInt64, of file: any File, _ path: String) {
    guard newEnd > end, step > 0 else { return }
    let count = max(step, newEnd - end)
    do {
      try preallocate(count, of: file, path)
      end += count
      step = min(2 * step, stepMax)
    } catch {
      // If there is no room the next attempt asks for less; any other error means no support for it.
      step = error.isOutOfSpace ? step / 2 : 0
      if step < 4096 { step = 0 }
    }
  }

  /// Allocates space up to `newEnd`. If the file system cannot preallocate, zeros are written to the last
  /// `step` bytes instead.
  mutating func require(_ newEnd: UInt64, step: Int, of file: any File, _ path: String)
    throws(StorageError)
  {
    do throws(StorageError) {
      try preallocate(newEnd - end, of: file, path)
    } catch {
      if error.isOutOfSpace { throw error }
      var zeros = RawBuffer()
      zeros.reserve(step)
      zeros.base.initializeMemory(as: UInt8.self, repeating: 0, count: step)
      try file.writeAll(
        UnsafeRawBufferPointer(start: zeros.base, count: step), at: newEnd - UInt64(step),
        path: path)
    }
    end = newEnd
  }

  mutating func didWrite(to offset: UInt64) { end = max(end, offset) }

  mutating func didCut(to offset: UInt64) { end = offset }

  private func preallocate(_ count: UInt64, of file: any File, _ path: String)
    throws(StorageError)
  {
    let start = end
    try uninterrupted("preallocate", path, at: start) { () throws(SystemError) in
      try file.preallocate(from: start, count: count)
    }
  }
}
