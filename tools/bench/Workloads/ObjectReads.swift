import Dendro
import DendroTesting

/// Objects of six fields that are read at random, in all fields.
struct ObjectReads: Sendable {
  static let fields = ["author", "body", "link", "place", "title", "uid"]

  let sets: PostSets
  /// `posts/<push id>`, in the order in which they are read.
  let paths: [String]
  /// The numbers of these posts.
  let order: [Int]

  init(_ turn: Turn) {
    let sets = PostSets(count: turn.scaled(100_000) * Self.fields.count, fields: Self.fields)
    var generator = SeededRandomness(seed: 11)
    order = (0..<sets.postCount).map { _ in Int.random(in: 0..<sets.postCount, using: &generator) }
    paths = order.map { post in
      String(sets.paths[post * Self.fields.count].dropLast(Self.fields[0].utf8.count + 1))
    }
    self.sets = sets
  }

  var byteCount: Int { 20 * Self.fields.count * order.count }
}

extension ObjectReads {
  static let dendro: [Contestant] = [
    contestant("a view for each") { database, paths in
      var byteCount = 0
      for path in paths {
        byteCount += try database.read { view in
          try view.child(path) { post in
            var byteCount = 0
            for field in fields { byteCount += try post.string(at: field)?.utf8.count ?? 0 }
            return byteCount
          }
        }
      }
      return byteCount
    },
    contestant("all in one view") { database, paths in
      try database.read { view in
        var byteCount = 0
        for path in paths {
          try view.child(path) { post in
            for field in fields { byteCount += try post.string(at: field)?.utf8.count ?? 0 }
          }
        }
        return byteCount
      }
    },
    contestant("all in one view, each child") { database, paths in
      try database.read { view in
        var byteCount = 0
        for path in paths {
          try view.child(path) { post in
            post.forEachChild { _, field in byteCount += field.string?.utf8.count ?? 0 }
          }
        }
        return byteCount
      }
    },
    contestant("getData and its children") { database, paths in
      let root = database.reference()
      var byteCount = 0
      for path in paths {
        let post = try await root.child(path).getData()
        for field in fields { byteCount += post[field].string?.utf8.count ?? 0 }
      }
      return byteCount
    },
    contestant("getData(as:)") { database, paths in
      let root = database.reference()
      var byteCount = 0
      for path in paths {
        byteCount += try await root.child(path).getData(as: Post.self).byteCount
      }
      return byteCount
    },
  ]

  private struct Post: Decodable {
    let author: String
    let body: String
    let link: String
    let place: String
    let title: String
    let uid: String

    var byteCount: Int {
      author.utf8.count + body.utf8.count + link.utf8.count + place.utf8.count + title.utf8.count
        + uid.utf8.count
    }
  }

  private static func contestant(
    _ name: String, _ read: @escaping @Sendable (Database, [String]) async throws -> Int
  ) -> Contestant {
    Contestant("dendro, \(name)") { turn in
      let objects = ObjectReads(turn)
      return try await turn.withDatabase { database in
        try objects.sets.write(to: database)
        var byteCount = 0
        let measurement = try await Measurement.awaiting(objects.paths.count) {
          byteCount = try await read(database, objects.paths)
        }
        try expect(byteCount == objects.byteCount, "every field is read")
        return measurement
      }
    }
  }
}
