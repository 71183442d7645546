import Dendro
import Foundation
import Testing

/// Calls that make a query, and the error that it carries; nil if it is good.
struct ValidityRow: CustomTestStringConvertible, @unchecked Sendable {
  let name: String
  let error: String?
  let query: (DatabaseQuery) -> DatabaseQuery

  init(_ name: String, _ error: String?, _ query: @escaping (DatabaseQuery) -> DatabaseQuery) {
    self.name = name
    self.error = error
    self.query = query
  }

  var testDescription: String { "\(name): \(error ?? "good")" }
}

let parameter = "InvalidQueryParameter"
let badPath = "InvalidPathValidation"
private let badKey = "InvalidKeyValidation"

@Suite("Which queries are valid")
struct QueryValidityTests {
  static let rows: [ValidityRow] =
    orders + starts + ends + equals + limits + children + types + pairs

  static let orders: [ValidityRow] = [
    ValidityRow("two orders", parameter) { $0.queryOrderedByKey().queryOrderedByValue() },
    ValidityRow("by key twice", parameter) { $0.queryOrderedByKey().queryOrderedByKey() },
    ValidityRow("by priority twice", parameter) {
      $0.queryOrderedByPriority().queryOrderedByPriority()
    },
    ValidityRow("by child twice", parameter) {
      $0.queryOrdered(byChild: "a").queryOrdered(byChild: "a")
    },
    ValidityRow("by priority, then by key", parameter) {
      $0.queryOrderedByPriority().queryOrderedByKey()
    },
    ValidityRow("an order after a limit and a range", nil) {
      $0.queryLimited(toLast: 1).queryStarting(atValue: 1).queryOrderedByValue()
    },
  ]

  static let starts: [ValidityRow] = [
    ValidityRow("two starts", parameter) {
      $0.queryStarting(atValue: 1).queryStarting(atValue: 2)
    },
    ValidityRow("start at and after", parameter) {
      $0.queryStarting(atValue: 1).queryStarting(afterValue: 1)
    },
    ValidityRow("start after equal", parameter) {
      $0.queryEqual(toValue: 1).queryStarting(atValue: 1)
    },
    ValidityRow("start and end", nil) { $0.queryStarting(atValue: 1).queryEnding(atValue: 2) },
    ValidityRow("end and start", nil) {
      $0.queryEnding(beforeValue: 2).queryStarting(afterValue: 1)
    },
    ValidityRow("start beyond the end", nil) {
      $0.queryStarting(atValue: 2).queryEnding(atValue: 1)
    },
  ]

  static let ends: [ValidityRow] = [
    ValidityRow("two ends", parameter) { $0.queryEnding(atValue: 1).queryEnding(atValue: 2) },
    ValidityRow("end at and before", parameter) {
      $0.queryEnding(atValue: 1).queryEnding(beforeValue: 2)
    },
    ValidityRow("end after equal", parameter) {
      $0.queryEqual(toValue: 1).queryEnding(atValue: 1)
    },
  ]

  static let equals: [ValidityRow] = [
    ValidityRow("equal after start", parameter) {
      $0.queryStarting(atValue: 1).queryEqual(toValue: 1)
    },
    ValidityRow("equal after end", parameter) {
      $0.queryEnding(atValue: 1).queryEqual(toValue: 1)
    },
    ValidityRow("equal twice", parameter) { $0.queryEqual(toValue: 1).queryEqual(toValue: 1) },
    ValidityRow("equal and limit", nil) { $0.queryEqual(toValue: 1).queryLimited(toFirst: 1) },
  ]

  static let limits: [ValidityRow] = [
    ValidityRow("limit 0", parameter) { $0.queryLimited(toFirst: 0) },
    ValidityRow("last limit 0", parameter) { $0.queryLimited(toLast: 0) },
    ValidityRow("limit 2147483648", parameter) { $0.queryLimited(toFirst: 2_147_483_648) },
    ValidityRow("last limit 2147483648", parameter) { $0.queryLimited(toLast: 2_147_483_648) },
    ValidityRow("limit UInt.max", parameter) { $0.queryLimited(toFirst: .max) },
    ValidityRow("limit 2147483647", nil) { $0.queryLimited(toFirst: 2_147_483_647) },
    ValidityRow("last limit 2147483647", nil) { $0.queryLimited(toLast: 2_147_483_647) },
    ValidityRow("two limits", parameter) {
      $0.queryLimited(toFirst: 1).queryLimited(toFirst: 1)
    },
    ValidityRow("first and last", parameter) {
      $0.queryLimited(toFirst: 1).queryLimited(toLast: 1)
    },
  ]

  static let children: [ValidityRow] =
    ["$key", ".key", "$priority", ".priority", "$value", ".value", "/", "//"].map { path in
      ValidityRow("by child \(path)", parameter) { $0.queryOrdered(byChild: path) }
    }
    + ["", "a.b", "a/$b", "a#", "[", "]", "a/\u{1}", String(repeating: "k", count: 769)].map {
      path in
      ValidityRow("by child \"\(path.prefix(10))\"", badPath) { $0.queryOrdered(byChild: path) }
    }
    + ["a", "a/b", "/a//b/", "key", "e\u{301}"].map { path in
      ValidityRow("by child \(path)", nil) { $0.queryOrdered(byChild: path) }
    }

  /// What a call sets, of which there is one in a query.
  private typealias Part = (
    name: String, sets: Set<String>, call: (DatabaseQuery) -> DatabaseQuery
  )

  nonisolated(unsafe) private static let parts: [Part] = [
    ("queryOrdered(byChild:)", ["order"], { $0.queryOrdered(byChild: "s") }),
    ("queryOrderedByKey()", ["order", "key"], { $0.queryOrderedByKey() }),
    ("queryOrderedByValue()", ["order"], { $0.queryOrderedByValue() }),
    ("queryOrderedByPriority()", ["order"], { $0.queryOrderedByPriority() }),
    ("queryStarting(atValue:)", ["start"], { $0.queryStarting(atValue: "a") }),
    (
      "queryStarting(atValue:childKey:)", ["start", "childKey"],
      { $0.queryStarting(atValue: "a", childKey: "k") }
    ),
    ("queryStarting(afterValue:)", ["start"], { $0.queryStarting(afterValue: "a") }),
    (
      "queryStarting(afterValue:childKey:)", ["start", "childKey"],
      { $0.queryStarting(afterValue: "a", childKey: "k") }
    ),
    ("queryEnding(atValue:)", ["end"], { $0.queryEnding(atValue: "b") }),
    (
      "queryEnding(atValue:childKey:)", ["end", "childKey"],
      { $0.queryEnding(atValue: "b", childKey: "k") }
    ),
    ("queryEnding(beforeValue:)", ["end"], { $0.queryEnding(beforeValue: "b") }),
    (
      "queryEnding(beforeValue:childKey:)", ["end", "childKey"],
      { $0.queryEnding(beforeValue: "b", childKey: "k") }
    ),
    ("queryEqual(toValue:)", ["start", "end"], { $0.queryEqual(toValue: "a") }),
    (
      "queryEqual(toValue:childKey:)", ["start", "end", "childKey"],
      { $0.queryEqual(toValue: "a", childKey: "k") }
    ),
    ("queryLimited(toFirst:)", ["limit"], { $0.queryLimited(toFirst: 1) }),
    ("queryLimited(toLast:)", ["limit"], { $0.queryLimited(toLast: 1) }),
  ]

  /// Any two calls: good unless both set the same, or a child key meets the order by key.
  static let pairs: [ValidityRow] = parts.flatMap { first in
    parts.map { second in
      let sets = first.sets.union(second.sets)
      let isBad =
        !first.sets.isDisjoint(with: second.sets.subtracting(["childKey"]))
        || sets.isSuperset(of: ["key", "childKey"])
      return ValidityRow("\(first.name), \(second.name)", isBad ? parameter : nil) {
        second.call(first.call($0))
      }
    }
  }

  static let types: [ValidityRow] = byKey + byPriority + byAny + childKeys

  static let byKey: [ValidityRow] =
    ([nil, NSNull(), 5, 5.5, true, NSNumber(value: 1)] as [Any?]).flatMap { value in
      [
        ValidityRow("by key, starting at \(shown(value))", parameter) {
          $0.queryOrderedByKey().queryStarting(atValue: value)
        },
        ValidityRow("by key, starting after \(shown(value))", parameter) {
          $0.queryOrderedByKey().queryStarting(afterValue: value)
        },
        ValidityRow("by key, ending at \(shown(value))", parameter) {
          $0.queryOrderedByKey().queryEnding(atValue: value)
        },
        ValidityRow("by key, ending before \(shown(value))", parameter) {
          $0.queryOrderedByKey().queryEnding(beforeValue: value)
        },
        ValidityRow("by key, equal to \(shown(value))", parameter) {
          $0.queryOrderedByKey().queryEqual(toValue: value)
        },
      ]
        + (value is Bool || value is NSNumber && !(value is Int || value is Double)
          ? []
          : [
            ValidityRow("starting at \(shown(value)), then by key", parameter) {
              $0.queryStarting(atValue: value).queryOrderedByKey()
            }
          ])
    } + [
      ValidityRow("by key, with a child key", parameter) {
        $0.queryOrderedByKey().queryStarting(atValue: "a", childKey: "b")
      },
      ValidityRow("by key, with a nil child key", parameter) {
        $0.queryOrderedByKey().queryStarting(atValue: "a", childKey: nil)
      },
      ValidityRow("by key, equal with a child key", parameter) {
        $0.queryOrderedByKey().queryEqual(toValue: "a", childKey: "a")
      },
      ValidityRow("by key, equal with a nil child key", parameter) {
        $0.queryOrderedByKey().queryEqual(toValue: "a", childKey: nil)
      },
      ValidityRow("by key, ending with a nil child key", parameter) {
        $0.queryOrderedByKey().queryEnding(atValue: "a", childKey: nil)
      },
      ValidityRow("with a nil child key, then by key", parameter) {
        $0.queryStarting(atValue: "a", childKey: nil).queryOrderedByKey()
      },
      ValidityRow("by key, after with a child key", parameter) {
        $0.queryOrderedByKey().queryStarting(afterValue: "a", childKey: "b")
      },
      ValidityRow("by key, before with a child key", parameter) {
        $0.queryOrderedByKey().queryEnding(beforeValue: "a", childKey: "b")
      },
      ValidityRow("by key, after with a nil child key", nil) {
        $0.queryOrderedByKey().queryStarting(afterValue: "a", childKey: nil)
      },
      ValidityRow("by key, before with a nil child key", nil) {
        $0.queryOrderedByKey().queryEnding(beforeValue: "a", childKey: nil)
      },
      ValidityRow("by key, a string that is no key", nil) {
        $0.queryOrderedByKey().queryStarting(atValue: "").queryEnding(atValue: "a/[.]#$")
      },
    ]

  static let byPriority: [ValidityRow] =
    ([true, false, NSNumber(value: true)] as [Any?]).flatMap { value in
      [
        ValidityRow("by default, starting at \(shown(value))", parameter) {
          $0.queryStarting(atValue: value)
        },
        ValidityRow("by priority, ending at \(shown(value))", parameter) {
          $0.queryOrderedByPriority().queryEnding(atValue: value)
        },
        ValidityRow("equal to \(shown(value)), then by priority", parameter) {
          $0.queryEqual(toValue: value).queryOrderedByPriority()
        },
        ValidityRow("equal to \(shown(value)), then by value", nil) {
          $0.queryEqual(toValue: value).queryOrderedByValue()
        },
        ValidityRow("by child, equal to \(shown(value))", nil) {
          $0.queryOrdered(byChild: "a").queryEqual(toValue: value)
        },
      ]
    } + [
      ValidityRow("by priority, nil, a number, a string", nil) {
        $0.queryOrderedByPriority().queryStarting(atValue: nil).queryEnding(atValue: "x")
      }
    ]

  static let byAny: [ValidityRow] =
    ([
      ["a": 1], [1], [String: Any](), NSDictionary(), NSArray(), Date(), Data(), NSObject(),
      Double.nan, Double.infinity, ServerValue.timestamp(),
      String(repeating: "s", count: 10 * 1024 * 1024 + 1),
    ] as [Any?]).enumerated().flatMap { index, value in
      [
        ValidityRow("by value, a bound that is no leaf, \(index)", parameter) {
          $0.queryOrderedByValue().queryStarting(atValue: value)
        },
        ValidityRow("by default, a bound that is no leaf, \(index)", parameter) {
          $0.queryEnding(beforeValue: value)
        },
        ValidityRow("by child, a bound that is no leaf, \(index)", parameter) {
          $0.queryEqual(toValue: value).queryOrdered(byChild: "a")
        },
        ValidityRow("by key, a bound that is no leaf, \(index)", parameter) {
          $0.queryEqual(toValue: value).queryOrderedByKey()
        },
      ]
    } + [
      ValidityRow("an optional without value", nil) {
        $0.queryOrderedByValue().queryStarting(atValue: Optional<Int>.none as Any)
      },
      ValidityRow("the longest string", nil) {
        $0.queryEnding(atValue: String(repeating: "s", count: 10 * 1024 * 1024))
      },
    ]

  static let childKeys: [ValidityRow] =
    ["", "a.b", "a/b", "$", "\u{7f}", String(repeating: "k", count: 769)].flatMap { key in
      [
        ValidityRow("start with child key \"\(key.prefix(10))\"", badKey) {
          $0.queryStarting(atValue: 1, childKey: key)
        },
        ValidityRow("after child key \"\(key.prefix(10))\"", badKey) {
          $0.queryStarting(afterValue: 1, childKey: key)
        },
        ValidityRow("end with child key \"\(key.prefix(10))\"", badKey) {
          $0.queryEnding(atValue: 1, childKey: key)
        },
        ValidityRow("before child key \"\(key.prefix(10))\"", badKey) {
          $0.queryEnding(beforeValue: 1, childKey: key)
        },
        ValidityRow("equal with child key \"\(key.prefix(10))\"", badKey) {
          $0.queryEqual(toValue: 1, childKey: key)
        },
      ]
    } + [
      ValidityRow("the longest child key", nil) {
        $0.queryEqual(toValue: 1, childKey: String(repeating: "k", count: 768))
      }
    ]

  @Test("every combination is good, or carries its error", arguments: rows)
  func validity(_ row: ValidityRow) async throws {
    let ref = Database.inMemory().reference().child("place")
    try await ref.setValue(["a": 1])
    let query = row.query(ref)
    guard let name = row.error else {
      _ = try await query.getData()
      return
    }
    let error = await failure { _ = try await query.getData() }
    #expect(error?.name == name)
    #expect(error?.message.contains("/place") == true, "\(error?.message ?? "")")
    #expect(error?.message.contains("query") == true)
    #expect(error.map { $0.message.utf8.count < 400 } == true, "\(error?.message ?? "")")
  }
}
