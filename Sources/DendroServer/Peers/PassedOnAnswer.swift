import DendroEngine
import DendroProtocol

/// What the server that leads says of a write that it has not made: a letter, and a text.
enum PassedOnAnswer {
  static func bytes(_ outcome: WriteOutcome) -> [UInt8] {
    let (letter, text): (Character, String) =
      switch outcome {
      case .made: ("m", "")
      case .stale: ("s", "")
      case .denied(let verdict):
        if case .tooLarge = verdict.decision { ("l", "") } else { ("d", verdict.trace ?? "") }
      case .failed(let error): ("f", "\(error.status) \(error.text)")
      }
    return Array("\(letter)\(text)".utf8)
  }

  static func outcome(_ bytes: [UInt8]) -> WriteOutcome {
    let text = String(decoding: bytes.dropFirst(), as: UTF8.self)
    switch bytes.first.map({ Character(Unicode.Scalar($0)) }) {
    case "m": return .made
    case "s": return .stale
    case "d": return .denied(AuthorizationVerdict(.deny, trace: text.isEmpty ? nil : text))
    case "l": return .denied(AuthorizationVerdict(.tooLarge))
    case "f":
      let parts = text.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, let status = Int(parts[0]) else { break }
      return .failed(RESTError(status, String(parts[1])))
    default: break
    }
    return .failed(RESTError(503, "The servers do not understand each other."))
  }
}
