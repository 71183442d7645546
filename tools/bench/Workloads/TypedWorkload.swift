import Dendro
import Foundation

extension Workload {
  static let typed = Workload(
    "typed", row: "W10",
    """
    posts of six fields as Codable values: a list of 100 is decoded, posts are set, and one field of a post is counted \
    in a transaction; each beside the way without types.
    """,
    [
      Comparison(
        "lists of 100 decoded", "objects",
        [
          lists("dendro, children(as:)") { list, _ in
            try list.children(as: Post.self).reduce(0) { $0 + $1.value.stars }
          },
          lists("foundation, JSONDecoder of a dictionary") { _, json in
            try JSONDecoder().decode([String: Post].self, from: json)
              .reduce(0) { $0 + $1.value.stars }
          },
        ]),
      Comparison(
        "posts set", "posts",
        [
          sets("dendro, setValue(from:)") { try $0.setValue(from: $1) },
          sets("dendro, setValue([String: Any])") { $0.setValue($1.dictionary) },
        ]),
      Comparison(
        "transactions", "transactions",
        [
          transactions("dendro, runTransaction(as:)") { post in
            try await post.runTransaction(as: Post.self) { $0?.stars += 1 }
          },
          transactions("dendro, transaction with the dictionary") { post in
            try await post.transaction { data in
              var value = data.value as? [String: Any] ?? [:]
              value["stars"] = (value["stars"] as? Int ?? 0) + 1
              data.value = value
            }
          },
          transactions("dendro, transaction with the field") { post in
            try await post.transaction { data in
              data["stars"].int = (data["stars"].int ?? 0) + 1
            }
          },
        ]),
    ])

  private struct Post: Codable, Sendable {
    var title: String
    var author: String
    var stars: Int
    var ratio: Double
    var isSeen: Bool
    var note: String?

    init(_ number: Int) {
      title = "Title \(number) of a tree"
      author = "Ada Lovelace"
      stars = number
      ratio = Double(number) / 3
      isSeen = number.isMultiple(of: 2)
      note = number.isMultiple(of: 3) ? nil : "a note"
    }

    var dictionary: [String: Any] {
      var dictionary: [String: Any] = [
        "title": title, "author": author, "stars": stars, "ratio": ratio, "isSeen": isSeen,
      ]
      dictionary["note"] = note
      return dictionary
    }
  }

  private static let listCount = 100

  /// - Parameter decode: decodes a list from a snapshot or from its JSON, and adds up the stars.
  private static func lists(
    _ name: String, _ decode: @escaping @Sendable (DataSnapshot, Data) throws -> Int
  ) -> Contestant {
    Contestant(name) { turn in
      let posts = (0..<listCount).map { Post($0) }
      let rounds = turn.scaled(2_000)
      return try await turn.withDatabase { database in
        let root = database.reference()
        for post in posts { try await root.addChild(from: post) }
        let list = try await root.getData()
        let json = Data(list.json().utf8)
        var stars = 0
        let measurement = try Measurement.blocking(rounds * listCount) {
          for _ in 0..<rounds { stars += try decode(list, json) }
        }
        try expect(stars == rounds * listCount * (listCount - 1) / 2, "every post is decoded")
        return measurement
      }
    }
  }

  private static func sets(
    _ name: String, _ set: @escaping @Sendable (DatabaseReference, Post) throws -> Void
  ) -> Contestant {
    Contestant(name) { turn in
      let posts = (0..<1_000).map { Post($0) }
      let count = turn.scaled(100_000)
      return try await turn.withDatabase { database in
        let references = posts.indices.map { database.reference().child("posts/\($0)") }
        let measurement = try Measurement.blocking(count) {
          for index in 0..<count { try set(references[index % 1_000], posts[index % 1_000]) }
          try database.synchronize()
        }
        let last = (count - 1) % 1_000
        let stars = try await references[last].getData()["stars"].int
        try expect(stars == last, "every post is set")
        return measurement
      }
    }
  }

  private static func transactions(
    _ name: String, _ run: @escaping @Sendable (DatabaseReference) async throws -> Void
  ) -> Contestant {
    Contestant(name) { turn in
      let count = turn.scaled(20_000)
      // In memory: no transaction waits for a disk.
      let database = Database.inMemory()
      let post = database.reference().child("post")
      try await post.setValue(from: Post(0))
      let measurement = try await Measurement.awaiting(count) {
        for _ in 0..<count { try await run(post) }
      }
      let stars = try await post.getData()["stars"].int
      try expect(stars == count, "every transaction is counted")
      try await database.close()
      return measurement
    }
  }
}
