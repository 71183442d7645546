import DendroStorage
import Dispatch
package import DendroTree

/// A location of which alone the value is wanted. It depends on the writes at it, above it and below it: no other
/// write adds, changes or removes anything there.
package struct ReplayLocation {
  private let storedPath: [UInt8]

  package init(_ path: Path) { storedPath = path.storedBytes }

  /// Whether a write may change what is at the location.
  func isConcerned(by write: WriteView) -> Bool {
    storedPath.withUnsafeBytes { write.concerns($0) }
  }

  /// Calls `body` with what of a write concerns the location: some entries of an update, a whole other write.
  ///
  /// - Parameter buffer: room for these entries.
  package func withPart(
    of write: WriteView, _ buffer: PayloadBuffer,
    _ body: (WriteView) throws(PageFailure) -> Void
  ) throws(PageFailure) {
    guard isConcerned(by: write) else { return }
    guard write.kind == .update else { return try body(write) }
    buffer.removeAll()
    let facts = storedPath.withUnsafeBytes { write.appendPart(concerning: $0, to: buffer) }
    try buffer.withBytes { (bytes) throws(PageFailure) in
      try body(WriteView(.update, at: write.path, body: bytes, facts: facts))
    }
  }

  /// Whether a record's payload is nothing but the set of one leaf that does not concern the location. If it is
  /// something else, or wrong, `LogV1Reader` reads it.
  func isPassedOver(by payload: UnsafeRawBufferPointer) -> Bool {
    // A write's time, as its record's; its kind; a path of so many bytes.
    guard payload.count > 4, payload[0] == 0, payload[1] == WriteKind.set.rawValue, payload[2] == 0,
      payload[3] < 0x80
    else { return false }
    let pathEnd = 4 + Int(payload[3])
    guard pathEnd < payload.count else { return false }
    let path = UnsafeRawBufferPointer(rebasing: payload[4..<pathEnd])
    guard !isRelated(to: path), Path.keyCount(validating: path) ?? .max <= Limits.depth else {
      return false
    }
    return PackedScalar.leafEnd(validating: payload, at: pathEnd) == payload.count
  }

  /// Whether a path leads to the location, above it or below it.
  private func isRelated(to path: UnsafeRawBufferPointer) -> Bool {
    storedPath.withUnsafeBytes { WriteView.areRelated($0, path) }
  }

  /// How the log is read by two threads for this location; nil for the root, which every write concerns.
  var parallelReading: ParallelReading? {
    guard !storedPath.isEmpty else { return nil }
    return ParallelReading(
      run: { body in
        let isDone = DispatchSemaphore(value: 0)
        DispatchQueue(label: "dendro-recovery", autoreleaseFrequency: .workItem).async {
          body()
          isDone.signal()
        }
        return { isDone.wait() }
      },
      makeFilter: { LocationFilter(self) })
  }
}

/// Wants the records that may have a write which concerns a location.
private final class LocationFilter: RecordFilter {
  private let location: ReplayLocation
  private var reader = LogV1Reader()
  private(set) var lastTime = Int64.min

  init(_ location: ReplayLocation) { self.location = location }

  func wants(_ record: RecordInfo, _ payload: UnsafeRawBufferPointer) -> Bool {
    if record.count == 1, location.isPassedOver(by: payload) {
      lastTime = max(lastTime, record.baseTime)
      return false
    }
    reader.restart(record, payload)
    do throws(CodingError) {
      for _ in 0..<record.count where location.isConcerned(by: try reader.next()) { return true }
    } catch {
      return true
    }
    guard reader.isAtEnd else { return true }
    lastTime = max(lastTime, reader.time)
    return false
  }
}
