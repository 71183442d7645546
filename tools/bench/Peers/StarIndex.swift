#if canImport(CDendroLMDB)
  import CDendroLMDB

  /// Posts in LMDB, with an index by their stars that an app would write by hand.
  ///
  /// A value is the number of stars, in the order of bytes that sorts, the time, the title with its length
  /// before it, and the author. A key of the index is the number of stars and the key of the post.
  struct StarIndex {
    private let lmdb: LMDB
    private let posts: StarredPosts
    private let entries: Entries

    init(_ lmdb: LMDB, _ posts: StarredPosts) {
      self.lmdb = lmdb
      self.posts = posts
      entries = Entries(
        posts.ids.indices.map { index in
          (
            Array(posts.ids[index].utf8),
            Self.bytes(posts.stars[index]) + Self.bytes(posts.times[index])
              + [UInt8(posts.titles[index].utf8.count)]
              + Array((posts.titles[index] + posts.authors[index]).utf8)
          )
        })
    }

    func write() throws {
      try lmdb.write { transaction throws(PeerError) in
        for post in 0..<entries.count {
          try LMDB.put(entries.key(post), entries.value(post), in: lmdb.entries, transaction)
          try Self.withIndexKey(posts.stars[post], entries.key(post)) { key throws(PeerError) in
            try LMDB.put(key, Bytes(start: nil, count: 0), in: lmdb.index, transaction)
          }
        }
      }
    }

    /// Reads the value, writes it with the new number, and moves its key in the index: one transaction.
    func change(_ post: Int, to stars: Int) throws {
      let key = entries.key(post)
      try lmdb.write { transaction throws(PeerError) in
        guard let old = try LMDB.get(key, in: lmdb.entries, transaction) else {
          throw PeerError(peer: "lmdb", message: "a post is missing")
        }
        // The old value is lent until something is written.
        let oldStars = Self.number(old)
        try Self.withValue(stars, old) { value throws(PeerError) in
          try LMDB.put(key, value, in: lmdb.entries, transaction)
        }
        try Self.withIndexKey(oldStars, key) { indexKey throws(PeerError) in
          var indexKey = MDB_val(indexKey)
          try LMDB.check(mdb_del(transaction, lmdb.index, &indexKey, nil))
        }
        try Self.withIndexKey(stars, key) { indexKey throws(PeerError) in
          try LMDB.put(indexKey, Bytes(start: nil, count: 0), in: lmdb.index, transaction)
        }
      }
    }

    /// The sum of the stars of the posts with the most.
    func topSum(_ count: Int) throws -> Int {
      var sum = 0
      try forEachTop(count) { sum += Self.number($0) }
      return sum
    }

    /// All fields of the posts with the most stars.
    func topFields(_ count: Int) throws -> ReadFields {
      var fields = ReadFields()
      try forEachTop(count) { value in
        let titleEnd = 17 + Int(value[16])
        fields.add(
          title: String(decoding: value[17..<titleEnd], as: UTF8.self),
          author: String(decoding: value[titleEnd...], as: UTF8.self), stars: Self.number(value),
          time: Self.number(Bytes(rebasing: value.dropFirst(8))))
      }
      return fields
    }

    /// Follows the index from its end, and reads every post.
    private func forEachTop(_ count: Int, _ body: (Bytes) -> Void) throws {
      try lmdb.read { transaction throws(PeerError) in
        var opened: OpaquePointer?
        try LMDB.check(mdb_cursor_open(transaction, lmdb.index, &opened))
        defer { mdb_cursor_close(opened) }
        var key = MDB_val()
        var value = MDB_val()
        var step = MDB_LAST
        for _ in 0..<count {
          let status = mdb_cursor_get(opened, &key, &value, step)
          if status == MDB_NOTFOUND { break }
          try LMDB.check(status)
          let post = Bytes(rebasing: key.bytes.dropFirst(8))
          if let found = try LMDB.get(post, in: lmdb.entries, transaction) { body(found) }
          step = MDB_PREV
        }
      }
    }

    private static func bytes(_ number: Int) -> [UInt8] {
      withUnsafeBytes(of: UInt64(number).bigEndian) { Array($0) }
    }

    /// The number at the beginning.
    private static func number(_ value: Bytes) -> Int {
      Int(UInt64(bigEndian: value.loadUnaligned(as: UInt64.self)))
    }

    /// The number of stars, and then the key of the post.
    private static func withIndexKey(
      _ stars: Int, _ key: Bytes, _ body: (Bytes) throws(PeerError) -> Void
    ) throws(PeerError) {
      try withStars(stars, before: key, body)
    }

    /// A value with another number of stars.
    private static func withValue(
      _ stars: Int, _ old: Bytes, _ body: (Bytes) throws(PeerError) -> Void
    ) throws(PeerError) {
      try withStars(stars, before: Bytes(rebasing: old.dropFirst(8)), body)
    }

    private static func withStars(
      _ stars: Int, before rest: Bytes, _ body: (Bytes) throws(PeerError) -> Void
    ) throws(PeerError) {
      var failure: PeerError?
      withUnsafeTemporaryAllocation(byteCount: 8 + rest.count, alignment: 8) { joined in
        joined.storeBytes(of: UInt64(stars).bigEndian, as: UInt64.self)
        UnsafeMutableRawBufferPointer(rebasing: joined[8...]).copyMemory(from: rest)
        do throws(PeerError) { try body(Bytes(joined)) } catch { failure = error }
      }
      if let failure { throw failure }
    }
  }
#endif
