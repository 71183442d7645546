import Dendro
import Foundation
import Testing

/// The path of an encoding or decoding error, `a.b[2]`, behind its kind; nil for other errors.
func place(_ error: (any Error)?) -> String? {
  switch error {
  case EncodingError.invalidValue(_, let context)?: "invalidValue \(path(context.codingPath))"
  case DecodingError.typeMismatch(_, let context)?: "typeMismatch \(path(context.codingPath))"
  case DecodingError.valueNotFound(_, let context)?: "valueNotFound \(path(context.codingPath))"
  case DecodingError.keyNotFound(let key, let context)?:
    "keyNotFound \(path(context.codingPath + [key]))"
  case DecodingError.dataCorrupted(let context)?: "dataCorrupted \(path(context.codingPath))"
  default: nil
  }
}

private func path(_ keys: [any CodingKey]) -> String {
  keys.reduce("") { path, key in
    if let index = key.intValue, key.stringValue.hasPrefix("Index") { return path + "[\(index)]" }
    return path.isEmpty ? key.stringValue : path + "." + key.stringValue
  }
}

/// What `body` throws.
func thrown(_ body: () throws -> Void) -> (any Error)? {
  do {
    try body()
    return nil
  } catch {
    return error
  }
}

/// The message for people of an encoding or decoding error.
func message(_ error: (any Error)?) -> String {
  switch error {
  case EncodingError.invalidValue(_, let context)?: context.debugDescription
  case DecodingError.typeMismatch(_, let context)?: context.debugDescription
  case DecodingError.valueNotFound(_, let context)?: context.debugDescription
  case DecodingError.keyNotFound(_, let context)?: context.debugDescription
  case DecodingError.dataCorrupted(let context)?: context.debugDescription
  default: ""
  }
}

/// An error as it is shown to people; "" for none.
func printed(_ error: (any Error)?) -> String { error.map { "\($0)" } ?? "" }

func encoder(_ configure: (Database.Encoder) -> Void) -> Database.Encoder {
  let encoder = Database.Encoder()
  configure(encoder)
  return encoder
}

func decoder(_ configure: (Database.Decoder) -> Void) -> Database.Decoder {
  let decoder = Database.Decoder()
  configure(decoder)
  return decoder
}

/// Encodes into a tree and into Foundation's objects, and says what came out; both must be the same
/// data.
func stored<T: Encodable>(
  _ value: T, _ encoder: Database.Encoder = Database.Encoder()
) async throws -> String {
  let root = Database.inMemory().reference()
  try await root.child("tree").setValue(from: value, encoder: encoder)
  try await root.child("objects").setValue(try encoder.encode(value))
  let tree = shown(try await root.child("tree").getData().valueInExportFormat())
  let objects = shown(try await root.child("objects").getData().valueInExportFormat())
  #expect(tree == objects)
  return tree
}

/// Decodes from a tree and from Foundation's objects; both must give the same.
func loaded<T: Decodable & Equatable>(
  _ type: T.Type, _ data: Any?, _ decoder: Database.Decoder = Database.Decoder()
) async throws -> T {
  let root = Database.inMemory().reference()
  try await root.setValue(data)
  let snapshot = try await root.getData()
  let fromObjects = Result { try decoder.decode(type, from: snapshot.value as Any) }
  let fromExport = Result { try decoder.decode(type, from: snapshot.valueInExportFormat() as Any) }
  do {
    let value = try snapshot.data(as: type, decoder: decoder)
    #expect(try fromObjects.get() == value)
    #expect(try fromExport.get() == value)
    return value
  } catch {
    let text = place(error)
    #expect(place(thrown { _ = try fromObjects.get() }) == text)
    #expect(place(thrown { _ = try fromExport.get() }) == text)
    throw error
  }
}

/// Where decoding fails, in trees and in Foundation's objects.
func refusal<T: Decodable & Equatable>(
  _ type: T.Type, _ data: Any?, _ decoder: Database.Decoder = Database.Decoder()
) async -> String? {
  do {
    let value = try await loaded(type, data, decoder)
    Issue.record("decoded \(value)")
    return nil
  } catch {
    #expect(!message(error).isEmpty)
    return place(error)
  }
}

/// A key of any text.
struct TextKey: CodingKey {
  var stringValue: String
  var intValue: Int? { nil }
  init(_ text: String) { stringValue = text }
  init(stringValue: String) { self.stringValue = stringValue }
  init?(intValue: Int) { nil }
}
