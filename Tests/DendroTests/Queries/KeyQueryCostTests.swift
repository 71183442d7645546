import Dendro
import DendroTree
import Foundation
import Testing

#if os(Linux)
  /// What a window by key costs, in a place with few and with many children.
  @Suite("What reading by key costs")
  struct KeyQueryCostTests {
    private static func key(_ number: Int) -> String {
      "key-of-more-than-inline-\(1_000_000 + number)"
    }

    private static func allocationCounts(childCount: Int) throws -> [Int] {
      var builder = NodeBuilder()
      for number in 0..<childCount {
        builder.append(try Key(key(number)), Node(.integer(Int64(number))))
      }
      let node = builder.finish()
      let middle = key(childCount / 2)
      let requests: [(inout QueryRequest) throws -> Void] = [
        { try $0.limit(to: 100, last: false, call: "") },
        { try $0.limit(to: 100, last: true, call: "") },
        {
          try $0.start(at: .init(value: .string(middle), key: nil, call: ""))
          try $0.limit(to: 100, last: false, call: "")
        },
        {
          try $0.end(at: .init(value: .string(middle), key: nil, call: ""))
          try $0.limit(to: 100, last: true, call: "")
        },
        {
          try $0.start(at: .init(value: .string(middle), key: nil, isExclusive: true, call: ""))
          try $0.end(at: .init(value: .string(key(childCount / 2 + 100)), key: nil, call: ""))
        },
      ]
      return try requests.map { request in
        var asked = QueryRequest()
        try asked.sort(by: .key, call: "")
        try request(&asked)
        let parameters = try asked.parameters()
        var shownCount = 0
        let count = AllocationCount.during {
          shownCount = node.filtered(by: parameters).childCount
        }
        #expect(shownCount == 100)
        return count
      }
    }

    @Test("a window of 100 allocates about the same among 1,000 and among 200,000 children")
    func window() async {
      // In a process of its own: the count stays on. A key of this length costs an allocation, so that every
      // child that is looked at counts.
      await #expect(processExitsWith: .success) {
        try #require(AllocationCount.begin())
        let few = try Self.allocationCounts(childCount: 1_000)
        let many = try Self.allocationCounts(childCount: 200_000)
        for (few, many) in zip(few, many) {
          #expect(few > 100 && many <= few + 20, "\(few) and \(many)")
        }
      }
    }
  }
#endif
