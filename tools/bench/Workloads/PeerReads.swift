#if canImport(CDendroLMDB)
  import CDendroLMDB
#endif

/// What peers do in the workload of reads.
enum PeerReads {
  static var leaf: [Contestant?] {
    #if canImport(CDendroLMDB)
      [
        lmdbLeaf("one transaction kept", isKept: true),
        lmdbLeaf("one transaction kept, strings made", isKept: true, makesStrings: true),
        lmdbLeaf("a transaction for each", isKept: false),
        .peer(.levelDB) { turn, peer in
          let input = LeafReads(turn)
          let entries = try input.write(to: peer)
          var byteCount = 0
          let measurement = try Measurement.blocking(input.order.count) {
            for index in input.order {
              try peer.get(entries.key(index)) { byteCount += $0?.count ?? 0 }
            }
          }
          try expect(byteCount == 20 * input.order.count, "every leaf is read")
          return measurement
        },
      ]
    #else
      []
    #endif
  }

  static var object: [Contestant?] {
    #if canImport(CDendroLMDB)
      [
        lmdbObject("a cursor over six keys, one transaction kept", isKept: true),
        lmdbObject("a cursor over six keys, a transaction for each", isKept: false),
        lmdbWholeObject,
      ]
    #else
      []
    #endif
  }

  static var besideWriter: [Contestant?] {
    #if canImport(CDendroLMDB)
      [1, 2].map { readerCount in
        .lmdb("\(readerCount) reader\(readerCount == 1 ? "" : "s")") { turn, lmdb in
          let input = LeafReads(turn)
          let entries = try input.write(to: lmdb)
          return try input.measure(
            readerCount: readerCount,
            write: { try lmdb.put(entries.key($0), entries.value($0)) },
            read: {
              let reader = try LMDBReader(lmdb)
              defer { reader.close() }
              var byteCount = 0
              for index in input.order {
                try reader.renew()
                byteCount += try reader.get(entries.key(index))?.count ?? 0
                reader.reset()
              }
              return byteCount
            })
        }
      }
    #else
      []
    #endif
  }
}

#if canImport(CDendroLMDB)
  extension LeafReads {
    fileprivate func write(to peer: any Peer) throws -> Entries {
      let entries = sets.entries
      try peer.batch { put in
        for index in 0..<entries.count { try put(entries.key(index), entries.value(index)) }
      }
      return entries
    }
  }

  extension PeerReads {
    private static func lmdbLeaf(
      _ name: String, isKept: Bool, makesStrings: Bool = false
    ) -> Contestant {
      .lmdb(name) { turn, lmdb in
        let input = LeafReads(turn)
        let entries = try input.write(to: lmdb)
        let reader = try LMDBReader(lmdb)
        defer { reader.close() }
        if isKept { try reader.renew() }
        var byteCount = 0
        let measurement = try Measurement.blocking(input.order.count) {
          for index in input.order {
            if !isKept { try reader.renew() }
            if let value = try reader.get(entries.key(index)) {
              byteCount +=
                makesStrings ? String(decoding: value, as: UTF8.self).utf8.count : value.count
            }
            if !isKept { reader.reset() }
          }
        }
        try expect(byteCount == 20 * input.order.count, "every leaf is read")
        return measurement
      }
    }

    /// The fields are keys beside each other, so that each can be written alone, as with Dendro.
    private static func lmdbObject(_ name: String, isKept: Bool) -> Contestant {
      .lmdb(name) { turn, lmdb in
        let objects = ObjectReads(turn)
        let entries = objects.sets.entries
        try lmdb.batch { put in
          for index in 0..<entries.count { try put(entries.key(index), entries.value(index)) }
        }
        let fieldCount = ObjectReads.fields.count
        let reader = try LMDBReader(lmdb)
        defer { reader.close() }
        if isKept { try reader.renew() }
        var byteCount = 0
        let measurement = try Measurement.blocking(objects.order.count) {
          for post in objects.order {
            if !isKept { try reader.renew() }
            try reader.values(from: entries.key(post * fieldCount), fieldCount) {
              byteCount += $0.count
            }
            if !isKept { reader.reset() }
          }
        }
        try expect(byteCount == objects.byteCount, "every field is read")
        return measurement
      }
    }

    /// All fields are one value, which is not taken apart.
    private static var lmdbWholeObject: Contestant {
      .lmdb("one value of all fields, not decoded, one transaction kept") { turn, lmdb in
        let objects = ObjectReads(turn)
        let fieldCount = ObjectReads.fields.count
        let entries = Entries(
          keys: (0..<objects.sets.postCount).map { objects.sets.paths[$0 * fieldCount] },
          values: (0..<objects.sets.postCount).map {
            objects.sets.values[$0 * fieldCount..<($0 + 1) * fieldCount].joined()
          })
        try lmdb.batch { put in
          for index in 0..<entries.count { try put(entries.key(index), entries.value(index)) }
        }
        let reader = try LMDBReader(lmdb)
        defer { reader.close() }
        try reader.renew()
        var byteCount = 0
        let measurement = try Measurement.blocking(objects.order.count) {
          for post in objects.order { byteCount += try reader.get(entries.key(post))?.count ?? 0 }
        }
        try expect(byteCount == objects.byteCount, "every object is read")
        return measurement
      }
    }
  }
#endif
