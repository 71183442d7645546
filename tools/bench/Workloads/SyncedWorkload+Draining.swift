import Dendro
import Foundation

extension Workload {
  /// Writes that were made offline are sent, from the next opening until the server has answered all of them.
  static let draining = Comparison(
    "draining, 100,000 writes made offline", "writes",
    [
      drained, readyFrames("frames, with the numbers of writes", isNumbered: true),
      readyFrames("frames, without them", isNumbered: false),
    ])

  private static func sets(_ turn: Turn) -> PostSets { PostSets(count: turn.scaled(100_000)) }

  private static let drained = Contestant("dendro, synced in a directory") { turn in
    let sets = sets(turn)
    return try await serving(turn) { server in
      let writer = try await Database.synced(server, at: turn)
      writer.goOffline()
      let app = writer.reference(withPath: "app")
      for index in 0..<sets.count {
        app.child(sets.paths[index]).setValue(sets.values[index]) { _, _ in }
      }
      try expect(try writer.pendingWrites().count == sets.count, "all writes wait")
      try await writer.close()
      let before = server.processorSeconds
      let meter = Cost.Meter()
      let database = try await Database.synced(server, at: turn)
      // Once this returns, all are at hand again.
      database.goOnline()
      let opening = meter.stop().seconds
      try await database.waitForPendingWrites()
      var measurement = Measurement(count: sets.count, cost: meter.stop())
      measurement.serverProcessorSeconds = server.processorSeconds - before
      measurement.add("time", "s", measurement.cost.seconds)
      measurement.add("of it until all are at hand", "s", opening)
      for index in [0, sets.count / 2, sets.count - 1] {
        let leaf = try await database.reference(withPath: "app/" + sets.paths[index]).getData()
        try expect(leaf.string == sets.values[index], "every write is there")
      }
      try await database.close()
      return measurement
    }
  }

  /// The client sends all frames as fast as the server takes them, and reads the answers meanwhile, as the database does.
  private static func readyFrames(_ name: String, isNumbered: Bool) -> Contestant {
    Contestant(name) { turn in
      let sets = sets(turn)
      return try withServer(turn) { server in
        let connection = try LoadConnection(port: server.port)
        try connection.upgrade()
        let frames = Array(
          sets.paths.indices.map { frame(sets, $0, isNumbered: isNumbered) }.joined())
        let answer = try connection.callWire(
          WireRequestBytes.request(sets.count, "p", "{\"p\":\"/first\",\"d\":true}"))
        let before = server.processorSeconds
        var answers: [UInt8] = []
        var measurement = try Measurement.blocking(sets.count) {
          let sending = Thread.running { try connection.send(frames) }
          answers = try connection.receive(sets.count * answer.count)
          try sending.join()
        }
        measurement.serverProcessorSeconds = server.processorSeconds - before
        measurement.add("time", "s", measurement.cost.seconds)
        let end = answer.suffix(20)
        let areGood = stride(from: 0, to: answers.count, by: answer.count).allSatisfy {
          answers[$0..<min(answers.count, $0 + answer.count)].suffix(20) == end
        }
        try expect(areGood && answers.count == sets.count * answer.count, "good answers")
        let last = try connection.callWire(
          WireRequestBytes.request(
            sets.count + 1, "g", "{\"p\":\"/app/\(sets.paths[sets.count - 1])\"}"))
        try expect(
          String(decoding: last, as: UTF8.self).contains(sets.values[sets.count - 1]),
          "the last write shows")
        return measurement
      }
    }
  }

  /// A put as a synced database sends it.
  private static func frame(_ sets: PostSets, _ index: Int, isNumbered: Bool) -> [UInt8] {
    let client = String(repeating: "c", count: 32)
    let incarnation = String(repeating: "1", count: 16)
    // A client has the answers of all writes but the last ones.
    let lowest = max(1, index + 1 - 8192)
    let names = "\"c\":\"\(client)\",\"i\":\"\(incarnation)\""
    let number = isNumbered ? ",\"n\":{\(names),\"n\":\(index + 1),\"l\":\(lowest)}" : ""
    return WireRequestBytes.request(
      index, "p", "{\"p\":\"/app/\(sets.paths[index])\",\"d\":\"\(sets.values[index])\"\(number)}")
  }
}
