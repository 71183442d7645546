import Dendro
import Foundation
import Testing

extension QueryValidityTests {
  @Test("a bad query hands its error to every operation; its location stays good")
  func everyOperation() async throws {
    let ref = Database.inMemory().reference().child("place")
    try await ref.setValue(["a": 1])
    let query = ref.queryLimited(toFirst: 0)
    #expect(
      await failure { _ = try await query.getData() }?.message
        == "the query at /place: queryLimited(toFirst:) was given 0: a limit is from 1 to 2147483647"
    )
    let read = await withCheckedContinuation { continuation in
      query.getData { continuation.resume(returning: ($0 as? DatabaseError, $1)) }
    }
    #expect(read.0?.code == .invalidQuery && !read.1.exists())
    let cancelled = await withCheckedContinuation { continuation in
      _ = query.observe(
        .value, with: { _ in Issue.record("an event of a bad query") },
        withCancel: { continuation.resume(returning: $0 as? DatabaseError) })
    }
    #expect(cancelled?.name == parameter)
    let (nothing, previous) = await query.observeSingleEventAndPreviousSiblingKey(of: .childAdded)
    #expect(!nothing.exists() && previous == nil)
    query.removeAllObservers()
    query.removeObserver(withHandle: 0)
    // The first error stays, whatever is asked for further.
    let further = query.queryOrdered(byChild: "").queryStarting(atValue: Date())
    #expect(await failure { _ = try await further.getData() }?.name == parameter)
    #expect(try await query.ref.getData().hasChild("a"))
    #expect(query.debugDescription.contains(parameter))
    // A bad location comes before a bad query, and stays with the location.
    let nowhere = ref.child("a.b").queryLimited(toFirst: 0)
    #expect(await failure { _ = try await nowhere.getData() }?.name == badPath)
    #expect(await failure { _ = try await nowhere.ref.getData() }?.name == badPath)
  }

  @Test("the query that a call is made on stays as it is")
  func values() async throws {
    let ref = Database.inMemory().reference()
    try await ref.setValue(["a": 1, "b": 2, "c": 3])
    let ordered = ref.queryOrderedByKey()
    let first = ordered.queryLimited(toFirst: 1)
    let last = ordered.queryLimited(toLast: 1)
    #expect(try await first.getData().map(\.key) == ["a"])
    #expect(try await last.getData().map(\.key) == ["c"])
    #expect(try await ordered.getData().childrenCount == 3)
  }

  // MARK: Identity

  @Test("equal if location and parameters are, however the query was made")
  func identity() {
    let ref = Database.inMemory().reference().child("p")
    func same(_ a: DatabaseQuery, _ b: DatabaseQuery, _ line: Int = #line) {
      #expect(a == b && a.hashValue == b.hashValue && Set([a, b]).count == 1, "line \(line)")
    }
    same(
      ref.queryOrdered(byChild: "s").queryLimited(toFirst: 1),
      ref.queryLimited(toFirst: 1).queryOrdered(byChild: "/s/"))
    same(ref, ref.queryOrderedByPriority())
    same(ref.queryLimited(toLast: 2), ref.queryOrderedByPriority().queryLimited(toLast: 2))
    same(ref.queryStarting(atValue: 1), ref.queryStarting(atValue: 1.0))
    same(ref.queryStarting(atValue: 1), ref.queryStarting(atValue: 1, childKey: nil))
    same(ref.queryStarting(atValue: nil), ref.queryStarting(atValue: NSNull()))
    same(
      ref.queryEqual(toValue: "x", childKey: "k"),
      ref.queryEnding(atValue: "x", childKey: "k").queryStarting(atValue: "x", childKey: "k"))
    same(ref.queryOrderedByKey().ref, ref)
    let different: [DatabaseQuery] = [
      ref, ref.queryOrderedByKey(), ref.queryOrderedByValue(), ref.queryOrdered(byChild: "s"),
      ref.queryOrdered(byChild: "s/s"), ref.queryLimited(toFirst: 1), ref.queryLimited(toLast: 1),
      ref.queryLimited(toFirst: 2), ref.queryStarting(atValue: 1), ref.queryStarting(atValue: "1"),
      ref.queryStarting(afterValue: 1), ref.queryEnding(atValue: 1), ref.queryEqual(toValue: 1),
      ref.queryStarting(atValue: 1, childKey: "k"), ref.queryStarting(atValue: 2),
      ref.queryStarting(atValue: "e\u{301}"), ref.queryStarting(atValue: "\u{e9}"),
      ref.queryOrderedByValue().queryStarting(atValue: true),
      ref.queryOrderedByKey().queryStarting(atValue: ""),
      ref.queryOrderedByKey().queryStarting(atValue: "a/b"), ref.child("q"),
      ref.queryLimited(toFirst: 0), Database.inMemory().reference().child("p"),
    ]
    for (i, a) in different.enumerated() {
      for (j, b) in different.enumerated() { #expect((a == b) == (i == j), "\(a) \(b)") }
    }
    #expect(Set(different).count == different.count)
  }

  @Test("a query describes itself by its calls")
  func description() {
    let ref = Database.inMemory().reference().child("posts")
    let query = ref.queryLimited(toLast: 10).queryOrdered(byChild: "metrics/views")
      .queryStarting(afterValue: 5, childKey: "k")
    #expect(
      query.description() == ref.url
        + #".queryOrdered(byChild: "metrics/views").queryStarting(afterValue: 5, childKey: "k")"#
        + ".queryLimited(toLast: 10)")
    #expect("\(query)" == query.description())
    #expect("\(ref.queryOrderedByPriority())" == ref.url)
    #expect(
      "\(ref.queryEqual(toValue: "a\n").queryOrderedByKey())"
        == ref.url + #".queryOrderedByKey().queryEqual(toValue: "a\n")"#)
  }
}
