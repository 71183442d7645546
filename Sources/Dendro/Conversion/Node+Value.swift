import DendroTree
import Foundation

/// Nodes as the values that programs written for Firebase expect.
///
/// Numbers and booleans go out as `NSNumber`: only then do both `as? Int` and `as? Double` work on
/// Linux as they do on Apple's systems.
extension Scalar {
  var foundationValue: Any {
    switch self {
    case .bool(let value): NSNumber(value: value)
    case .integer(let value): NSNumber(value: value)
    case .double(let value): NSNumber(value: value)
    case .string(let value): value
    case .bytes: preconditionFailure("the data have no bytes")
    }
  }
}

extension Node {
  /// `NSNull`, a scalar, an array if the keys allow it, or a dictionary. Priorities do not show.
  var foundationValue: Any {
    if let scalar { return scalar.foundationValue }
    if isEmpty { return NSNull() }
    if let length = arrayLength {
      var array = [Any](repeating: NSNull(), count: length)
      for (key, child) in children {
        if let index = key.arrayIndex { array[index] = child.foundationValue }
      }
      return array
    }
    var dictionary = [String: Any](minimumCapacity: childCount)
    for (key, child) in children { dictionary[key.string] = child.foundationValue }
    return dictionary
  }

  /// Never an array; priorities as `.priority`, beside `.value` on leaves. Set again, it gives this
  /// very node.
  var exportValue: Any {
    if let scalar {
      guard let priority else { return scalar.foundationValue }
      return [".value": scalar.foundationValue, ".priority": priority.foundationValue]
    }
    if isEmpty { return NSNull() }
    var dictionary = [String: Any](minimumCapacity: childCount + 1)
    for (key, child) in children { dictionary[key.string] = child.exportValue }
    if let priority { dictionary[".priority"] = priority.foundationValue }
    return dictionary
  }

  /// The length of the array that the children make: all keys are canonical array indices, and more
  /// than half of the places up to the last one are taken. Nil for a dictionary.
  var arrayLength: Int? {
    var last = -1
    for (key, _) in children {
      // Indices come first and ascend in the order of keys.
      guard let index = key.arrayIndex else { return nil }
      last = index
    }
    return last >= 0 && last < 2 * childCount ? last + 1 : nil
  }
}
