import Dendro
import DendroTestSupport
import Foundation
import Testing

extension TransactionTests {
  @Test("stars given and taken, and counted, by eight at once")
  func stars() async throws {
    let directory = TemporaryDirectory()
    let database = try await Database.open(
      at: directory.path, options: DatabaseOptions(durability: .onRequest))
    let post = database.reference().child("posts/p")
    try await post.setValue(["title": "Rings", "starCount": 0, "views": 0])
    try await withThrowingTaskGroup { group in
      for user in 0..<8 {
        group.addTask {
          // An odd number, so that each star is there in the end.
          for _ in 0...1_000 {
            try await post.runTransactionBlock { data in
              guard var post = data.value as? [String: AnyObject] else { return .abort() }
              var stars = post["stars"] as? [String: Bool] ?? [:]
              var starCount = post["starCount"] as? Int ?? 0
              if stars.removeValue(forKey: "user\(user)") != nil {
                starCount -= 1
              } else {
                starCount += 1
                stars["user\(user)"] = true
              }
              post["stars"] = stars as AnyObject?
              post["starCount"] = starCount as AnyObject?
              data.value = post
              return .success(withValue: data)
            }
            // A plain write, which conflicts with the others' transactions.
            try await post.child("views").setValue(ServerValue.increment(1))
          }
        }
      }
      try await group.waitForAll()
    }
    let stars = (0..<8).map { "user\($0):true" }.joined(separator: ",")
    let expected = "{starCount:8,stars:{\(stars)},title:\"Rings\",views:8008}"
    #expect(shown(try await post.getData().value) == expected)
    try await database.close()
    let reopened = try await Database.open(at: directory.path)
    #expect(
      shown(try await reopened.reference().child("posts/p").getData().value) == expected)
    try await reopened.close()
  }

  @Test("no sum is lost among transactions and plain writes at every height", arguments: 1...8)
  func sums(seed: Int) async throws {
    let database = Database.inMemory()
    let root = database.reference()
    let leaves = ["a/x/1", "a/x/2", "a/y", "b"]
    let writerCount = 4
    let count = 200
    let aborted = Shared(0)
    try await withThrowingTaskGroup { group in
      for writer in 0..<writerCount {
        group.addTask {
          var random = SeededGenerator(seed: UInt64(seed * 100 + writer))
          for _ in 0..<count {
            let leaf = leaves[Int(random.next() % UInt64(leaves.count))]
            let keys = leaf.split(separator: "/")
            let height = Int(random.next() % UInt64(keys.count + 1))
            let above = keys.prefix(height).joined(separator: "/")
            let below = keys.dropFirst(height).joined(separator: "/")
            let ref = above.isEmpty ? root : root.child(above)
            switch random.next() % 4 {
            case 0: try await root.child(leaf).setValue(ServerValue.increment(1))
            case 1: try await root.updateChildValues([leaf: ServerValue.increment(1)])
            default:
              let gives = random.next() % 8 > 0
              if !gives { aborted.withLock { $0 += 1 } }
              try await ref.runTransactionBlock { data in
                let sum = data.childData(byAppendingPath: below.isEmpty ? "/" : below)
                sum.value = (sum.value as? Int ?? 0) + 1
                return gives ? .success(withValue: data) : .abort()
              }
            }
          }
        }
      }
      try await group.waitForAll()
    }
    var sum = 0
    for leaf in leaves { sum += try await root.child(leaf).int ?? 0 }
    #expect(sum == writerCount * count - aborted.value, "seed \(seed)")
  }
}
