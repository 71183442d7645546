import DendroTree
import Foundation

extension ValueReader {
  mutating func dictionary(_ dictionary: [String: Any]) throws(ValidationError) {
    let branch = builder.beginBranch()
    do throws(ValidationError) {
      for (key, value) in dictionary { try child(key, value) }
      _ = builder.endBranch(branch)
    } catch {
      // Metadata are looked for only now, since most dictionaries have none; what they say comes first.
      guard dictionary.keys.contains(where: Self.isMetadata) else { throw error }
      builder.cancelBranch(branch)
      try special(
        dictionary[".value"], dictionary[".priority"], dictionary[".sv"], count: dictionary.count
      ) { (reader) throws(ValidationError) in
        for (key, value) in dictionary where !Self.isMetadata(key) { try reader.child(key, value) }
      }
    }
  }

  /// Dictionaries whose type says what all values are. To cast them to others would copy them.
  mutating func scalars<Value>(_ dictionary: [String: Value]) throws(ValidationError) {
    if dictionary.keys.contains(where: Self.isMetadata) {
      return try self.dictionary(dictionary.mapValues { $0 as Any })
    }
    let branch = builder.beginBranch()
    for (key, value) in dictionary { try child(key, value) }
    _ = builder.endBranch(branch)
  }

  mutating func dictionary(_ dictionary: [AnyHashable: Any]) throws(ValidationError) {
    // Most of these are server values.
    if dictionary.count == 1, let (key, content) = dictionary.first, key.base as? String == ".sv" {
      return try readServerValue(content)
    }
    try pairs(count: dictionary.count, dictionary.lazy.map { ($0.key.base, $0.value) })
  }

  /// Enumerated as it is: made a Swift dictionary, keys that differ only in normalization would meet.
  mutating func dictionary(_ dictionary: NSDictionary) throws(ValidationError) {
    try pairs(count: dictionary.count, dictionary.lazy.map { ($0.key, $0.value) })
  }

  mutating func pairs(
    count: Int, _ pairs: some Sequence<(Any, Any)>
  ) throws(ValidationError) {
    var value: Any?
    var priority: Any?
    var serverValue: Any?
    var isSpecial = false
    for (key, content) in pairs {
      guard let key = key as? String else {
        throw place.invalid("the key \(ValuePlace.shown(key)) is not a string")
      }
      switch key {
      case ".value": value = content
      case ".priority": priority = content
      case ".sv": serverValue = content
      default: continue
      }
      isSpecial = true
    }
    if isSpecial {
      return try special(value, priority, serverValue, count: count) {
        (reader) throws(ValidationError) in
        for (key, content) in pairs {
          if let key = key as? String, !Self.isMetadata(key) { try reader.child(key, content) }
        }
      }
    }
    let branch = builder.beginBranch()
    for (key, content) in pairs { try child(key as! String, content) }
    _ = builder.endBranch(branch)
  }

  mutating func array(_ elements: some Collection<Any>) throws(ValidationError) {
    let branch = builder.beginBranch()
    var index = 0
    for element in elements {
      try child(String(index), element)
      index += 1
    }
    _ = builder.endBranch(branch)
  }

  mutating func array(_ array: NSArray) throws(ValidationError) {
    let branch = builder.beginBranch()
    for index in 0..<array.count { try child(String(index), array[index]) }
    _ = builder.endBranch(branch)
  }

  @inline(__always)
  mutating func child(_ name: String, _ value: Any) throws(ValidationError) {
    if let scalar = plain(value), place.depth < Limits.depth, builder.beginChild(name) {
      append(scalar)
      _ = builder.endChild()
      return
    }
    try child(name) { (reader) throws(ValidationError) in try reader.read(value) }
  }

  /// Adds what `read` makes of the value of a key.
  @inline(__always)
  mutating func child(
    _ name: String, _ read: (inout ValueReader) throws(ValidationError) -> Void
  ) throws(ValidationError) {
    // Before going down: containers that hold themselves end here. Not so `NSMutableDictionary` and
    // `NSMutableArray` of Foundation for Linux: there whatever hands out an element bridges all below it
    // first, and uses up the stack.
    guard place.depth < Limits.depth, builder.beginChild(name) else {
      throw problem(withKey: name)
    }
    place.names.append(name)
    try read(&self)
    place.names.removeLast()
    _ = builder.endChild()
  }

  /// What is wrong with a key, or with data below it.
  private func problem(withKey name: String) -> ValidationError {
    do throws(ValidationError) {
      _ = try Key(name)
    } catch {
      return place.invalid(error.message)
    }
    var below = place
    below.names.append(name)
    return below.tooDeep()
  }
}
