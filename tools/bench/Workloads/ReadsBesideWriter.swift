import Dendro
import DendroTesting
import Foundation
import Synchronization

/// Leaves that one thread reads at random, while another one sets leaves as fast as it can: in the database that
/// is read, or in another one. A machine of two processors shows with the other one what is lost without any sharing.
struct ReadsBesideWriter: Sendable {
  /// The database in which the other thread writes.
  enum Place: String, CaseIterable { case another, same }

  static let comparison = Comparison(
    "leaf, beside a writer at full speed", "reads",
    ["getData for each", "a view for each", "a view for 16"].flatMap { way in
      Place.allCases.map { contestant(way, writingTo: $0) }
    } + [writerAlone])

  static func name(_ way: String, writingTo place: Place) -> String {
    "dendro, \(way), the writer in \(place == .same ? "the same" : "another") database"
  }

  static let writerAloneName = "dendro, the writer alone"

  private let reads: LeafReads
  /// How often each leaf of the order is read.
  private static let passCount = 3

  private static func contestant(_ way: String, writingTo place: Place) -> Contestant {
    Contestant(name(way, writingTo: place)) { turn in
      let input = ReadsBesideWriter(reads: LeafReads(turn))
      return try await turn.withDatabase(named: "read") { database in
        try input.reads.sets.write(to: database)
        guard place == .another else {
          return try await input.measure(way, database, writingTo: database)
        }
        return try await turn.withDatabase(named: "written") { other in
          try input.reads.sets.write(to: other)
          return try await input.measure(way, database, writingTo: other)
        }
      }
    }
  }

  private static let writerAlone = Contestant(writerAloneName) { turn in
    let input = ReadsBesideWriter(reads: LeafReads(turn))
    return try await turn.withDatabase(named: "written") { database in
      try input.reads.sets.write(to: database)
      let count = passCount * input.reads.order.count
      let written = Mutex<ThreadMeter.Reading?>(nil)
      var measurement = try Measurement.blocking(count) {
        try Thread.running {
          let meter = ThreadMeter()
          for number in 0..<count { input.set(number, in: database.reference()) }
          written.withLock { $0 = meter.stop() }
        }.join()
      }
      measurement.addWriter(count, written.withLock(\.self))
      return measurement
    }
  }

  private func measure(
    _ way: String, _ database: Database, writingTo other: Database
  ) async throws -> Measurement {
    let count = Self.passCount * reads.order.count
    let isOver = Atomic<Bool>(false)
    let written = Mutex<(count: Int, ThreadMeter.Reading)?>(nil)
    let writing = Thread.running {
      let root = other.reference()
      let meter = ThreadMeter()
      var number = 0
      while !isOver.load(ordering: .relaxed) {
        set(number, in: root)
        number += 1
      }
      written.withLock { $0 = (number, meter.stop()) }
    }
    var byteCount = 0
    var read: ThreadMeter.Reading?
    var measurement = try await Measurement.awaiting(count) {
      // What is awaited is there, so that one thread does all of it.
      let meter = ThreadMeter()
      for _ in 0..<Self.passCount { byteCount += try await readAll(way, database) }
      read = meter.stop()
    }
    isOver.store(true, ordering: .relaxed)
    try writing.join()
    try expect(byteCount == 20 * count, "every leaf is read")
    if let read {
      measurement.add(
        "undisturbed reads", "a second", Double(count) / read.undisturbedSeconds)
      measurement.add("CPU time of a read", "µs", read.processorSeconds * 1e6 / Double(count))
    }
    if let (count, reading) = written.withLock(\.self) { measurement.addWriter(count, reading) }
    return measurement
  }

  private func readAll(_ way: String, _ database: Database) async throws -> Int {
    var byteCount = 0
    switch way {
    case "getData for each":
      let root = database.reference()
      for index in reads.order {
        byteCount +=
          try await root.child(reads.sets.paths[index]).getData().string?.utf8.count ?? 0
      }
    case "a view for each":
      for index in reads.order {
        byteCount += try database.read {
          try $0.string(at: reads.sets.paths[index])?.utf8.count ?? 0
        }
      }
    default:
      for start in stride(from: 0, to: reads.order.count, by: 16) {
        byteCount += try database.read { view in
          var byteCount = 0
          for index in reads.order[start..<min(start + 16, reads.order.count)] {
            byteCount += try view.string(at: reads.sets.paths[index])?.utf8.count ?? 0
          }
          return byteCount
        }
      }
    }
    return byteCount
  }

  /// Sets one leaf to another value than it has.
  private func set(_ number: Int, in root: DatabaseReference) {
    let order = reads.order
    // Far from what is read at the same time.
    let index = order[(number + order.count / 2) % order.count]
    let value = (index + 1 + number / order.count) % reads.sets.count
    root.child(reads.sets.paths[index]).setValue(reads.sets.values[value])
  }
}

extension Measurement {
  fileprivate mutating func addWriter(_ count: Int, _ reading: ThreadMeter.Reading?) {
    guard let reading else { return }
    add("undisturbed sets", "a second", Double(count) / reading.undisturbedSeconds)
    add("CPU time of a set", "µs", reading.processorSeconds * 1e6 / Double(count))
  }
}

extension Turn {
  /// `withDatabase` in a folder of the turn's directory.
  fileprivate func withDatabase<R>(
    named name: String, _ body: (Database) async throws -> R
  ) async throws -> R {
    let folder = directory.appendingPathComponent(name, isDirectory: true)
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    return try await Turn(directory: folder, isQuick: isQuick).withDatabase(.onRequest, body)
  }
}
